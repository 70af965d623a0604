//go:build linux || darwin

package process

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxPipe is more than a pipe holds that nobody has made larger than the system lets
// everybody make it.
const maxPipe = 1 << 20

// diagnostics hands on what a command writes to its standard error.
type diagnostics struct {
	pipe *os.File // our end, which does not block

	mu  sync.Mutex // held while bytes are on their way
	to  io.Writer
	buf [16 << 10]byte
}

// follow hands on all that is written, until the end or until the pipe is closed.
func (d *diagnostics) follow() {
	conn, err := d.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) (done bool) {
		for {
			if n, err := d.read(fd); n == 0 {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
}

// catchUp hands on what has been written until now.
func (d *diagnostics) catchUp() {
	conn, err := d.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { // it is closed: all of it was handed on
		for sum := 0; sum < maxPipe; { // a command can write without end
			n, _ := d.read(fd)
			if n == 0 {
				return
			}
			sum += n
		}
	})
}

// read hands on what one read gives; nothing at the end, and where it would wait.
func (d *diagnostics) read(fd uintptr) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		n, err = unix.Read(int(fd), d.buf[:]) //nolint:gosec // the number of a file
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if n <= 0 {
		return 0, err
	}
	if _, err := d.to.Write(d.buf[:n]); err != nil {
		d.to = io.Discard // a writer that takes no more must not hold up the command
	}
	return n, nil
}
