//go:build !windows

package sqlite

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// mayWrite returns why this process may not read and write a file that exists.
func mayWrite(path string) error {
	if err := unix.Access(path, unix.R_OK|unix.W_OK); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
