// Package regular opens regular files in folders that other processes write to.
//
// Opening a named pipe waits for a writer, and opening a device can have effects. A look
// at the file before is not enough, as a command can put a pipe in its place between the
// look and the opening. So the opening does not wait, and what was opened must be what
// was seen.
package regular

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Errors of this package.
var (
	// ErrNot: what stands there is no regular file.
	ErrNot = errors.New("not a regular file")
	// ErrReplaced: another file stands there than was seen.
	ErrReplaced = errors.New("it was replaced while it was opened")
	// ErrTooLarge: the file has more bytes than the caller reads.
	ErrTooLarge = errors.New("too large")
)

// Open opens the regular file at a path for reading, and tells what it opened. A link is
// refused. Other errors are those of the system.
func Open(path string) (*os.File, fs.FileInfo, error) { return open(os.Lstat, os.OpenFile, path) }

// OpenIn is [Open] below a root.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return open(root.Lstat, root.OpenFile, name)
}

// Follow is [Open] through links.
func Follow(path string) (*os.File, fs.FileInfo, error) { return open(os.Stat, os.OpenFile, path) }

// FollowIn is [OpenIn] through links, which stay below the root.
func FollowIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return open(root.Stat, root.OpenFile, name)
}

// Seen opens the very file that was seen below a root. Where another stands there by now
// the error is [ErrReplaced].
func Seen(root *os.Root, name string, seen fs.FileInfo) (*os.File, fs.FileInfo, error) {
	return openSeen(root.OpenFile, name, seen)
}

// Read reads the regular file at a path, through no link, up to so many bytes. A longer
// one is [ErrTooLarge].
func Read(path string, most int64) ([]byte, error) {
	f, info, err := Open(path)
	return content(f, info, err, most)
}

// ReadIn is [Read] below a root.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	f, info, err := OpenIn(root, name)
	return content(f, info, err, most)
}

// ReadFollowed is [Read] through links.
func ReadFollowed(path string, most int64) ([]byte, error) {
	f, info, err := Follow(path)
	return content(f, info, err, most)
}

// maxReplaced bounds how often a file is opened that others replace meanwhile.
const maxReplaced = 100

type (
	looking func(name string) (fs.FileInfo, error)
	opening func(name string, flag int, mode fs.FileMode) (*os.File, error)
)

// open opens what stands at a name. Writers replace files whole, so it is looked at again
// when another one stands there.
func open(look looking, how opening, name string) (f *os.File, info fs.FileInfo, err error) {
	for range maxReplaced {
		if info, err = look(name); err != nil {
			return nil, nil, err
		}
		if f, info, err = openSeen(how, name, info); !errors.Is(err, ErrReplaced) {
			break
		}
	}
	return f, info, err
}

func openSeen(how opening, name string, seen fs.FileInfo) (*os.File, fs.FileInfo, error) {
	if !seen.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNot}
	}
	f, err := how(name, os.O_RDONLY|NonBlock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !os.SameFile(info, seen)) { // a pipe can have the number of a file that went
		err = &fs.PathError{Op: "open", Path: name, Err: ErrReplaced}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// content reads an opened file to its end, and closes it.
func content(f *os.File, info fs.FileInfo, err error, most int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := bytesOf(f, info.Size(), most)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is %w: more than %d bytes", f.Name(), ErrTooLarge, most)
	}
	return data, nil
}

// bytesOf reads up to one byte more than most; size is what is expected.
func bytesOf(f *os.File, size, most int64) ([]byte, error) {
	var data bytes.Buffer
	data.Grow(int(min(size, most)) + bytes.MinRead)
	_, err := data.ReadFrom(io.LimitReader(f, most+1))
	return data.Bytes(), err
}
