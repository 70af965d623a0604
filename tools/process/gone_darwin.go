package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// Gone tells whether pid is no process any more or a zombie: one that has ended
// and whose parent has not asked how.
func Gone(pid int) bool {
	if pid <= 0 || errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_stat == zombie
}

// pids lists the processes of the system.
func pids() ([]int, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	list := make([]int, 0, len(infos))
	for _, info := range infos {
		list = append(list, int(info.Proc.P_pid))
	}
	return list, nil
}
