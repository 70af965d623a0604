package process

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// argsOf are the arguments of a process of this user, its program's name first.
func argsOf(pid int) ([]string, error) {
	args, _, err := procArgs(pid)
	return args, err
}

// environOf is the environment that a process of this user was started with.
// macOS leaves it out for programs that its integrity protection guards.
func environOf(pid int) ([]string, error) {
	_, environ, err := procArgs(pid)
	return environ, err
}

func procArgs(pid int) (args, environ []string, err error) {
	data, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return nil, nil, err
	}
	return parseProcArgs(data)
}

// nameOf is a process's name: the first 16 bytes of its program's.
func nameOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", err
	}
	name, _, _ := bytes.Cut(info.Proc.P_comm[:], []byte{0})
	return string(name), nil
}

// parentOf is the parent of a process; 0 when that cannot be known.
func parentOf(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}
