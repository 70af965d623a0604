package records

import (
	"errors"
	"os"
	"syscall"
)

// syncData puts the content of f on disk with fdatasync, which leaves out the
// time of change that nobody needs after a crash.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		for {
			syncErr = syscall.Fdatasync(int(fd))
			if !errors.Is(syncErr, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, syncErr)
}
