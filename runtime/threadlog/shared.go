//go:build linux || darwin

package threadlog

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxShared is the length at which a shared log is put aside.
const maxShared = 8 << 20

// Shared is a log file that several processes may append to. When it has grown too long
// one of them gives it another name, with the ending .1, in the place of the one before;
// the others notice with their next line. One that is no regular file is only written to.
type Shared struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
}

// OpenShared opens the log at path, or makes it.
func OpenShared(path string) (*Shared, error) { return openShared(path, maxShared) }

func openShared(path string, most int64) (*Shared, error) {
	file, err := appendTo(path)
	return &Shared{path: path, most: most, file: file}, err
}

func appendTo(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, fileMode)
}

// Write appends p with one write(2). A log that cannot be put aside is written on.
func (s *Shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := s.file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size()+int64(len(p)) > s.most {
		_ = s.turn()
	}
	return s.file.Write(p)
}

// turn goes over to a new file, which another process may have made. The lock of the old
// one keeps two from doing it.
func (s *Shared) turn() error {
	if err := unix.Flock(int(s.file.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	old := s.file
	var err error
	if isAt(old, s.path) {
		err = os.Rename(s.path, s.path+".1")
	}
	var next *os.File
	if err == nil {
		next, err = appendTo(s.path)
	}
	if err != nil {
		return errors.Join(err, unix.Flock(int(old.Fd()), unix.LOCK_UN))
	}
	s.file = next
	return old.Close() // and with it goes the lock
}

// Close closes the file.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.file.Close()
}
