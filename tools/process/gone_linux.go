package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Gone tells whether pid is no process any more or a zombie: one that has ended
// and whose parent has not asked how.
func Gone(pid int) bool {
	if pid <= 0 {
		return true
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		defer func() { _ = unix.Close(fd) }()
		return readable(fd)
	case errors.Is(err, unix.ESRCH):
		return true
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return true // the number of a thread inside some process; the error depends on the kernel's age
	}
	return goneByProc(pid) // no such call (ENOSYS, or EPERM in a sandbox), or no descriptor left
}

// goneByProc answers for systems without pidfd_open(2). When in doubt the
// process is there.
func goneByProc(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && endedState(stat)
}

// endedState tells whether the content of a /proc/<pid>/stat file shows a
// process that has ended. The state is the letter after the name, which is in
// parentheses and may contain any byte (proc_pid_stat(5)).
func endedState(stat []byte) bool {
	name := bytes.LastIndex(stat, []byte(") "))
	if name < 0 || name+2 >= len(stat) {
		return false
	}
	state := stat[name+2]
	return state == 'Z' || state == 'X' || state == 'x'
}

// pids lists the processes of the system.
func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list, nil
}
