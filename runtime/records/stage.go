package records

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// ErrStaged says that somebody else is bringing threads in.
var ErrStaged = errors.New("threads are being imported by another process")

// Stage is where threads that come from elsewhere are put together. One that was not
// moved is never found.
type Stage interface {
	Records
	// Move moves a thread to where it is found, whole. The error wraps fs.ErrExist when
	// something is there.
	Move(thread.ID) error
	// Close removes what was not moved.
	Close() error
}

// Stage implements [Records].
func (l Local) Stage() (Stage, error) {
	home := l.Home()
	if home.Seal == nil {
		return nil, place.ErrNoState
	}
	s := &localStage{home: home, at: home.Staging()}
	s.Local = Local{Home: s.at.Always()}
	var err error
	if s.lock, err = lockStage(s.at.Dir); errors.Is(err, process.ErrLocked) {
		return nil, ErrStaged
	} else if err != nil {
		return nil, err
	}
	if err := s.clear(); err != nil {
		return nil, errors.Join(err, s.lock.Release())
	}
	return s, nil
}

// stageLock is held by the process that has the stage.
const stageLock = "stage.lock"

// maxMade bounds how often the folder of the stage is made that others remove.
const maxMade = 100

// lockStage makes the folder of the stage, and locks it. The one who had it before may
// remove it between the two.
func lockStage(dir string) (lock *process.Lock, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), dirMode); err != nil {
		return nil, err
	}
	for range maxMade {
		if err = os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if lock, err = process.Acquire(filepath.Join(dir, stageLock)); !errors.Is(err, fs.ErrNotExist) {
			return lock, err
		}
	}
	return nil, err
}

// dirMode: records are for their owner alone.
const dirMode = 0o700

type localStage struct {
	Local
	home, at folder.Home
	lock     *process.Lock
}

// clear removes everything but the lock.
func (s *localStage) clear() error {
	entries, err := os.ReadDir(s.at.Dir)
	for _, e := range entries {
		if e.Name() != stageLock {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.at.Dir, e.Name())))
		}
	}
	return err
}

// Move implements [Stage].
func (s *localStage) Move(id thread.ID) error {
	if err := folder.Check(s.home.Dir, id); err != nil {
		return err
	}
	from, to := string(s.at.Of(id)), string(s.home.Of(id))
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

// syncDir makes a new name in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Close implements [Stage].
func (s *localStage) Close() error {
	err := errors.Join(s.clear(), s.lock.Remove())
	_ = os.Remove(s.at.Dir) // another process may have it by now
	return err
}
