package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// placeAll moves every file into its place or, with an error, none.
func (p *performing) placeAll() error {
	err := p.place()
	if err == nil {
		p.syncFolders()
		p.Phase = phasePlaced
		err = p.write()
	}
	if err != nil {
		p.Phase = phasePlacing
		return errors.Join(err, p.takeBack())
	}
	return p.end()
}

// place moves every file into its place. Moves that were made are passed over.
func (p *performing) place() error {
	for _, m := range p.Moves {
		if err := p.make(m); err != nil {
			return fmt.Errorf("apply %s: %w", shownPath(m.Path), err)
		}
		p.Crashpoints.At(CrashApplyPlaced)
	}
	return nil
}

func (p *performing) make(m move) error {
	at, draft, old := filepath.FromSlash(m.Path), filepath.FromSlash(m.Draft), filepath.FromSlash(m.Old)
	now, err := p.textAt(m.Path)
	switch {
	case err != nil:
		return err
	case now == m.After:
		return nil
	case now != m.Before:
		return &ConflictError{[]Conflict{{Path: shownPath(m.Path), Kind: kindMeanwhile, Here: "modified"}}}
	case m.Draft == "":
		return p.root.Rename(at, old)
	}
	if m.Before != "" {
		if err := p.keepOld(at, old); err != nil {
			return err
		}
	}
	if err := p.clear(m.Path); err != nil {
		return err
	}
	if err := p.root.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	return p.root.Rename(draft, at)
}

// textAt is the mark of what stands at a path; a folder that is about to be replaced is
// nothing.
func (p *performing) textAt(at string) (string, error) {
	info, err := p.root.Lstat(filepath.FromSlash(at))
	if isMissing(err) || err == nil && info.IsDir() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	m, err := markOf(p.root, at, info)
	return m.text(), err
}

// clear removes the folders, empty by now, that stand where a file is to be.
func (p *performing) clear(at string) error {
	info, err := p.root.Lstat(filepath.FromSlash(at))
	if isMissing(err) || err == nil && !info.IsDir() {
		return nil
	}
	if err != nil {
		return err
	}
	var dirs []string
	err = fs.WalkDir(p.root.FS(), at, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		if err == nil {
			err = p.root.Remove(filepath.FromSlash(dir))
		}
	}
	return err
}

// keepOld keeps a file under another name: by a link, or as a copy where the file system
// has none.
func (p *performing) keepOld(at, old string) error {
	err := p.root.Link(at, old)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	info, lerr := p.root.Lstat(at)
	if lerr != nil {
		return lerr
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := p.root.Readlink(at)
		if err != nil {
			return err
		}
		return p.root.Symlink(to, old)
	}
	from, _, err := regular.OpenIn(p.root, at)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	to, err := fill(p.root, old, from, os.O_TRUNC, info.Mode().Perm(), true)
	if err != nil {
		return err
	}
	return errors.Join(to.Sync(), to.Close())
}

// syncFolders makes the moves survive a crash of the machine. A file system that cannot
// sync a folder has its own ways.
func (p *performing) syncFolders() {
	dirs := map[string]bool{}
	for _, m := range p.Moves {
		dirs[path.Dir(m.Path)] = true
	}
	_ = syncAll(p.root, slices.Collect(maps.Keys(dirs)))
}

// end records that the workspace was applied, and sweeps.
func (p *performing) end() error {
	s, err := p.of(thread.Workspace{Name: p.Workspace})
	if err != nil {
		return err
	}
	switch a, err := s.read(); {
	case isMissing(err): // it was removed with its thread
	case err != nil:
		return err
	default:
		a.Base, a.AppliedAt = p.Base, p.At
		if err := s.write(a); err != nil {
			return err
		}
	}
	p.Crashpoints.At(CrashApplyRecorded)
	return p.sweep()
}
