//go:build unix

package pgtest

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged returns attributes of a process in a session of its own, which no signal of
// a terminal reaches, and which does not run as root. The identity is that of its files.
func unprivileged() (attr *syscall.SysProcAttr, uid, gid int, err error) {
	attr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() != 0 {
		return attr, os.Geteuid(), os.Getegid(), nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return nil, 0, 0, err
		}
	}
	if uid, err = strconv.Atoi(account.Uid); err != nil {
		return nil, 0, 0, err
	}
	if gid, err = strconv.Atoi(account.Gid); err != nil {
		return nil, 0, 0, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // ids of accounts
	return attr, uid, gid, nil
}

const (
	sigFast      = syscall.SIGINT  // clients are disconnected
	sigImmediate = syscall.SIGQUIT // as if the power had failed, but for the disk's cache
	sigStop      = syscall.SIGSTOP
	sigContinue  = syscall.SIGCONT
	sigReload    = syscall.SIGHUP
)

func signal(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

// userOf is the user who a file belongs to.
func userOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
