package process

import "syscall"

// attachedAttr gives a command its own process group, and lets the kernel kill
// it when the thread that started it dies.
func attachedAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
