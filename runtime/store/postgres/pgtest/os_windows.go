package pgtest

import (
	"errors"
	"io/fs"
	"syscall"
)

func unprivileged() (attr *syscall.SysProcAttr, uid, gid int, err error) {
	return nil, 0, 0, errors.New("clusters for tests are made on Unix")
}

const (
	sigFast      = syscall.SIGINT
	sigImmediate = syscall.SIGQUIT
	sigStop      = syscall.SIGTERM
	sigContinue  = syscall.SIGTERM
	sigReload    = syscall.SIGHUP
)

func signal(int, syscall.Signal) error { return errors.New("clusters for tests are made on Unix") }

func userOf(fs.FileInfo) int { return 0 }
