package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockHolders lists the processes that have an exclusive lock on a file or a part
// of it, by proc_locks(5). Those of other namespaces are not among them.
func lockHolders(path string) (pids []int) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return nil
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 708 08:01:1234 0 EOF; a waiter has "->" before it.
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[3] != "WRITE" || fields[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
