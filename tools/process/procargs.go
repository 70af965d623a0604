//go:build linux || darwin

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
)

var errProcArgs = errors.New("process: arguments of another form than KERN_PROCARGS2")

// parseProcArgs reads what sysctl(3) tells of a process as KERN_PROCARGS2 of
// <sys/sysctl.h>: how many arguments there are, in four bytes; the path of the
// program and zero bytes; the arguments; the environment, up to an empty string.
func parseProcArgs(data []byte) (args, environ []string, err error) {
	if len(data) < 4 {
		return nil, nil, errProcArgs
	}
	count := binary.NativeEndian.Uint32(data)
	_, rest, found := bytes.Cut(data[4:], []byte{0})
	if !found || uint64(count) > uint64(len(rest)) {
		return nil, nil, errProcArgs
	}
	rest = bytes.TrimLeft(rest, "\x00")
	for range count {
		arg, after, found := bytes.Cut(rest, []byte{0})
		if !found {
			return nil, nil, errProcArgs
		}
		args, rest = append(args, string(arg)), after
	}
	for {
		entry, after, found := bytes.Cut(rest, []byte{0})
		if !found || len(entry) == 0 {
			return args, environ, nil
		}
		environ, rest = append(environ, string(entry)), after
	}
}
