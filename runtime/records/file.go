package records

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// fileMode: records are for their owner alone.
const fileMode = 0o600

// File is a record in the file of that path. A transcript may be one.
type File string

var _ Transcript = File("")

// Open implements [Source].
func (p File) Open() (Reader, error) {
	f, _, err := regular.Follow(string(p))
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Stamp implements [Source].
func (p File) Stamp() (Stamp, error) {
	info, err := os.Stat(string(p))
	if err != nil {
		return Stamp{}, err
	}
	s := Stamp{Size: info.Size(), Changed: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Object = [2]uint64{uint64(sys.Dev), uint64(sys.Ino)} //nolint:unconvert // the types differ between systems
	}
	return s, nil
}

// Where implements [Source].
func (p File) Where() string { return string(p) }

// Append implements [Transcript].
func (p File) Append() (Appender, error) {
	f, err := os.OpenFile(string(p), os.O_RDWR|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Watch implements [Transcript]. A system that has no watch left to give tells nothing.
func (p File) Watch() (written <-chan struct{}, stop func()) {
	none := func() {}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, none
	}
	if err := watcher.Add(filepath.Dir(string(p))); err != nil {
		_ = watcher.Close()
		return nil, none
	}
	told := make(chan struct{}, 1)
	go tell(watcher, told)
	return told, func() { _ = watcher.Close() }
}

// tell passes on that something was written, until the watcher is closed. After an error
// something may have been, which was lost.
func tell(watcher *fsnotify.Watcher, told chan<- struct{}) {
	for {
		select {
		case _, open := <-watcher.Events:
			if !open {
				return
			}
		case _, open := <-watcher.Errors:
			if !open {
				return
			}
		}
		select {
		case told <- struct{}{}:
		default: // it has been told, and has not looked yet
		}
	}
}

// file is an open file of a record.
type file struct{ *os.File }

// Size implements [Reader].
func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", f.Name())
	}
	return info.Size(), nil
}

// Sync implements [Appender].
func (f file) Sync() error { return syncData(f.File) }

// InPlace implements [Appender].
func (f file) InPlace() error {
	opened, err := f.Stat()
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	named, err := os.Lstat(f.Name())
	if err != nil || !os.SameFile(opened, named) {
		return fmt.Errorf("%w: %s", ErrLost, f.Name())
	}
	return nil
}
