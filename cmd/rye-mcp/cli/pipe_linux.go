package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// awaited is a reader of the same stream in which no thread of the system has to wait,
// and what ends it. Of a pipe the system gives another opening, whose reads need not
// block; others that share the first one, as a shell does with what it runs, find that as
// it was. Anything else is returned as it is.
func awaited(in io.Reader) (io.Reader, func()) {
	file, ok := in.(*os.File)
	if !ok {
		return in, func() {}
	}
	if info, err := file.Stat(); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return in, func() {}
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return in, func() {}
	}
	var again *os.File
	openErr := errors.New("not tried")
	err = raw.Control(func(fd uintptr) {
		again, openErr = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
	if err != nil || openErr != nil {
		return in, func() {}
	}
	return again, func() { _ = again.Close() } // it was only read
}
