package process

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// stoppedState is SSTOP of <sys/proc.h>.
const stoppedState = 4

// bootID names this start of the machine.
func bootID() string {
	if id, err := unix.Sysctl("kern.bootsessionuuid"); err == nil && id != "" {
		return id
	}
	at, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%06d", at.Sec, at.Usec)
}

// pidNamespace is empty: macOS has one namespace of process numbers.
func pidNamespace() string { return "" }

// startOf is when a process began, in microseconds; 0 when that cannot be known.
func startOf(pid int) int64 {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	at := info.Proc.P_starttime
	return at.Sec*1_000_000 + int64(at.Usec)
}

// Stopped tells whether a process is suspended: by SIGSTOP, by Ctrl-Z or by a
// debugger.
func Stopped(pid int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_stat == stoppedState
}
