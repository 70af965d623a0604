//go:build linux || darwin

// Package guesttest has tests run their program as a user without rights, where root runs them:
// nothing is kept from root, and root needs less than others do.
package guesttest

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ID is that of the user and of the group: nobody, where there is one.
const ID = 65534

// Credential makes a process one of that user; nil where only root could do it.
func Credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: ID, Gid: ID, NoSetGroups: true}
}

// Copy copies the program of this process, which only who has built it may come to.
func Copy(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()                                    // only read
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) //nolint:gosec // another user runs it
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}

// Start calls start, which starts the copy, until it can be. A child that another test forks has
// the file open for writing, as we had it, until it calls exec (go.dev/issue/22315).
func Start(start func() error) error {
	for {
		if err := start(); !errors.Is(err, syscall.ETXTBSY) {
			return err
		}
	}
}
