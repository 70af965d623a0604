//go:build linux || darwin

package process

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errNoPipe says that a file has no reader who could go.
var errNoPipe = errors.New("not a pipe or a socket")

// AwaitReaderGone returns nil when nobody reads from the other end of a pipe or socket
// any more. It wakes up for nothing else, ends with ctx, and with an error at once where
// the file is something else.
func AwaitReaderGone(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return errNoPipe
	}
	wake, leave, err := os.Pipe() // poll knows no contexts
	if err != nil {
		return err
	}
	defer func() { _ = wake.Close() }()
	unhook := context.AfterFunc(ctx, func() { _ = leave.Close() })
	defer func() {
		if unhook() {
			_ = leave.Close()
		}
	}()
	for {
		// Errors and the end of the other side are always reported (poll(2)).
		fds := []unix.PollFd{{Fd: int32(f.Fd())}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case fds[1].Revents != 0:
			return context.Cause(ctx)
		case fds[0].Revents != 0:
			return nil
		}
	}
}
