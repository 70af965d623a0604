package process

import "syscall"

// attachedAttr gives a command its own process group.
func attachedAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
