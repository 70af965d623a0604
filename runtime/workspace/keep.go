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
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
)

// dropUnused removes the files of a workspace in which nothing is left to apply, unless
// somebody works in them, and reports whether it has. The caller holds the lock.
func (s *space) dropUnused() (bool, error) {
	if used, err := s.used(); used || err != nil {
		return false, err
	}
	a, err := s.read()
	if err != nil {
		return false, err
	}
	if a.AppliedAt.IsZero() {
		return true, s.drop()
	}
	a.Gone = true
	if err := s.write(a); err != nil {
		return false, err
	}
	for _, part := range []string{s.tree(), s.git(), s.lent(), s.index(), filepath.Join(s.dir, "apply")} {
		if err := removeAll(part); err != nil {
			return false, err
		}
	}
	return true, nil
}

// trash begins the name of what is being removed.
const trash = ".gone-"

// drop removes a workspace with everything in it. The caller holds the lock. A sweep
// removes what a crash leaves.
func (s *space) drop() error {
	// The workspace can be made, and removed, again meanwhile: the lock goes with it.
	moved := filepath.Join(filepath.Dir(s.dir), trash+s.is.Name+"-"+string(thread.NewRun()))
	if err := os.Rename(s.dir, moved); err != nil {
		return err
	}
	return removeAll(moved)
}

// Tidy implements [Workspaces].
func (l *Local) Tidy(ctx context.Context, w thread.Workspace) (bool, error) {
	s, err := l.of(w)
	if err != nil {
		return false, err
	}
	now, done, err := s.look(ctx)
	if isMissing(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer done()
	if !now.clean() {
		return false, nil
	}
	return s.dropUnused()
}

// Remove implements [Workspaces].
func (l *Local) Remove(ctx context.Context, w thread.Workspace) error {
	s, err := l.of(w)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	return s.drop()
}

// Kept is how many workspaces there are on this machine, and how much room they take.
type Kept struct {
	Workspaces int
	Bytes      int64
	Partial    bool // there are more files than were counted
}

// maxCounted bounds the files that [Local.Kept] looks at.
const maxCounted = 200_000

// AppliedAt is when what has changed in a workspace was last applied here; zero: it was not, or
// that is not known on this machine. Boards ask for many, again and again: a file that is as it
// was is not read again.
func (l *Local) AppliedAt(w thread.Workspace) time.Time {
	s, err := l.of(w)
	if err != nil {
		return time.Time{}
	}
	now, err := os.Lstat(s.about())
	if err != nil {
		l.applied.Delete(w.Name)
		return time.Time{}
	}
	if had, found := l.applied.Load(w.Name); found {
		if was := had.(appliedAt); os.SameFile(was.file, now) && was.file.ModTime().Equal(now.ModTime()) && was.file.Size() == now.Size() {
			return was.at
		}
	}
	a, err := s.read()
	if err != nil {
		return time.Time{}
	}
	l.applied.Store(w.Name, appliedAt{now, a.AppliedAt})
	return a.AppliedAt
}

// appliedAt is what [Local.AppliedAt] has found in a file.
type appliedAt struct {
	file fs.FileInfo
	at   time.Time
}

// Kept measures the workspaces of the project. Without a state of its own, or
// without a user space, it has none.
func (l *Local) Kept() (Kept, error) {
	if l.Seal() == nil || l.User == "" {
		return Kept{}, nil
	}
	base, err := l.base()
	if err != nil {
		return Kept{}, err
	}
	entries, err := os.ReadDir(base)
	if isMissing(err) {
		return Kept{}, nil
	}
	var k Kept
	seen := 0
	for _, e := range entries {
		if !thread.IsWorkspaceName(e.Name()) && !strings.HasPrefix(e.Name(), trash) {
			continue
		}
		dir := filepath.Join(base, e.Name())
		if _, err := os.Lstat(filepath.Join(dir, "tree")); err == nil {
			k.Workspaces++
		}
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if seen++; seen > maxCounted {
				k.Partial = true
				return fs.SkipAll
			}
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // a file that cannot be seen is not counted
			}
			if info, err := d.Info(); err == nil {
				k.Bytes += info.Size()
			}
			return nil
		})
	}
	return k, err
}

// Sweep implements [Workspaces]. It removes what was being removed as well, workspaces that
// were never finished, and git folders that killed processes have left.
func (l *Local) Sweep(ctx context.Context, over func(Held) (Fate, error)) (removed int, err error) {
	base, err := l.base()
	if err != nil {
		return 0, nil //nolint:nilerr // there is no state, so there is no workspace
	}
	entries, err := os.ReadDir(base)
	if isMissing(err) {
		return 0, nil
	}
	_, left := gitrepo.SweepTemporary(l.Scratch, l.Now())
	failed := []error{err, left}
	for _, e := range entries {
		if ctx.Err() != nil {
			break
		}
		switch name := e.Name(); {
		case strings.HasPrefix(name, trash):
			failed = append(failed, removeAll(filepath.Join(base, name)))
		case strings.HasPrefix(name, applying) && strings.HasSuffix(name, ".json"):
			failed = append(failed, l.goOn(ctx, strings.TrimSuffix(strings.TrimPrefix(name, applying), ".json")))
		case thread.IsWorkspaceName(name):
			gone, err := l.sweepOne(ctx, name, over)
			failed = append(failed, err)
			if gone {
				removed++
			}
		}
	}
	return removed, errors.Join(failed...)
}

// goOn ends what was being applied to a target, unless somebody is at it.
func (l *Local) goOn(ctx context.Context, name string) error {
	t := &target{Local: l, name: name}
	free, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer free()
	return t.goOn()
}

// sweepOne removes a workspace that was never finished, has no changes, or is of no use any
// more. One that somebody works in is left alone.
func (l *Local) sweepOne(ctx context.Context, name string, over func(Held) (Fate, error)) (gone bool, err error) {
	s, err := l.of(thread.Workspace{Name: name})
	if err != nil {
		return false, err
	}
	unfinished, used, err := s.leftover(ctx)
	if err != nil || used || unfinished {
		return false, err
	}
	a, err := s.read()
	if err != nil {
		return false, err
	}
	fate := Keep
	if over != nil {
		if fate, err = over(Held{a.Workspace, a.Result, l.Machine}); err != nil {
			return false, err
		}
	}
	switch {
	case fate == Discard:
		return s.discard(ctx)
	case a.Gone:
		return false, nil
	case fate == Repeats:
		return s.dropRepeating(ctx)
	}
	return l.Tidy(ctx, s.is)
}

// discard removes a workspace with all that has changed in it, unless somebody works there.
func (s *space) discard(ctx context.Context) (gone bool, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	if used, err := s.used(); used || err != nil {
		return false, err
	}
	return true, s.drop()
}

// dropRepeating removes a workspace whose files are the result that has travelled, or what it
// began with, unless somebody works there.
func (s *space) dropRepeating(ctx context.Context) (gone bool, err error) {
	now, done, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	same, err := now.isResult(ctx, now.Result)
	if same = same || now.clean(); !same || now.holdsMore() || err != nil {
		return false, err
	}
	if used, err := s.used(); used || err != nil {
		return false, err
	}
	return true, s.drop()
}

// leftover removes a workspace that was never finished, unless somebody works at it.
func (s *space) leftover(ctx context.Context) (unfinished, used bool, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return false, false, err
	}
	defer unlock()
	if used, err = s.used(); used || err != nil {
		return false, used, err
	}
	if _, err = s.read(); !isMissing(err) {
		return false, false, err
	}
	return true, false, s.drop()
}
