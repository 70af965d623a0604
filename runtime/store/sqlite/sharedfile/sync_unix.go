//go:build !windows

package sharedfile

import (
	"errors"
	"os"
)

// syncDir puts the names in a folder on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
