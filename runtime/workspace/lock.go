package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// lockWait is how long a lock is waited for: as long as a large workspace is made.
	lockWait = 2 * gitTime
	// lockPoll is how often a held lock is looked at.
	lockPoll = 10 * time.Millisecond
)

// lock has this process, and what it runs of git, alone make, read, apply or remove the
// workspace until unlock.
func (s *space) lock(ctx context.Context) (unlock func(), err error) {
	held, err := awaitLock(ctx, filepath.Join(s.dir, "lock"))
	if err != nil {
		return nil, err
	}
	// No git is at work, so a lock of the index is that of one that was killed.
	if err := os.Remove(s.index() + gitLock); err != nil && !isMissing(err) {
		return nil, errors.Join(err, held.Release())
	}
	s.held = held
	return func() { _ = held.Release() }, nil
}

// gitLock ends the names of the files by which git locks others.
const gitLock = ".lock"

// unlockGit removes the locks that a killed git has left in the git folder of the tree. The
// caller knows that nobody works there.
func (s *space) unlockGit() error {
	return filepath.WalkDir(s.git(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "objects":
			return fs.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(path, gitLock):
			return os.Remove(path)
		}
		return nil
	})
}

// maxMade bounds how often the folder of a workspace is made that others remove.
const maxMade = 100

// lockMade is lock of a workspace that need not be there. One that is clean can be removed
// between the making of its folder and the locking.
func (s *space) lockMade(ctx context.Context) (unlock func(), err error) {
	for range maxMade {
		err = os.MkdirAll(s.users(), 0o700)
		if err == nil {
			unlock, err = s.lock(ctx)
		}
		if !isMissing(err) && !errors.Is(err, fs.ErrExist) {
			return unlock, err
		}
	}
	return nil, err
}

func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	held, err := awaitLock(ctx, path)
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Release() }, nil
}

func awaitLock(ctx context.Context, path string) (*process.Lock, error) {
	ctx, stop := context.WithTimeoutCause(ctx, lockWait, tool.Faultf(tool.CodeConflict, "another process has been at work on the workspace for %v", lockWait).
		WithHint("Call again later."))
	defer stop()
	return process.Await(ctx, path, lockPoll)
}

// enter has the workspace kept until leave, or the end of this process. The caller holds
// its lock.
func (s *space) enter() (leave func(), err error) {
	path := filepath.Join(s.users(), string(thread.NewRun()))
	held, err := process.Acquire(path)
	if err != nil {
		return nil, err
	}
	s.mine.Store(path, true)
	return func() {
		s.mine.Delete(path)
		_ = held.Remove()
	}, nil
}

// used reports whether a process works in the tree. The caller holds the lock of the
// workspace, so that none begins meanwhile.
func (s *space) used() (bool, error) { return s.usedBut(func(string) bool { return false }) }

// usedByOthers is used, by other processes than this one.
func (s *space) usedByOthers() (bool, error) {
	return s.usedBut(func(path string) bool {
		_, mine := s.mine.Load(path)
		return mine
	})
}

// usedBut is used, without the users that are left out.
func (s *space) usedBut(leftOut func(path string) bool) (bool, error) {
	entries, err := os.ReadDir(s.users())
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		path := filepath.Join(s.users(), e.Name())
		if leftOut(path) {
			continue
		}
		if err := process.RemoveLock(path); errors.Is(err, process.ErrLocked) {
			return true, nil
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}
