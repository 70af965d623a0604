package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Leader returns the process that leads its session and was started with all
// entries of mark in its environment, as a thread's process is; 0 when there is
// none.
func Leader(mark []string) (int, error) {
	all, err := pids()
	if err != nil {
		return 0, fmt.Errorf("look for a process with %q: %w", mark, err)
	}
	for _, pid := range all {
		if sid, err := unix.Getsid(pid); err == nil && sid == pid && startedWith(pid, mark) && !Gone(pid) {
			return pid, nil
		}
	}
	return 0, nil
}
