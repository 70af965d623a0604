package workspace

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// takeBack puts every file back that was moved. One that somebody has changed since stays
// as it is. The journal may stay behind, as on a full disk: goOn finds that the new files
// are gone.
func (p *performing) takeBack() error {
	var failed error
	if p.Phase == phasePlacing {
		p.Phase = phaseBack
		failed = p.write()
	}
	if p.Phase == phaseBack {
		for _, m := range slices.Backward(p.Moves) {
			if err := p.undo(m); err != nil {
				return errors.Join(failed, fmt.Errorf("take %s back: %w", shownPath(m.Path), err))
			}
		}
	}
	return errors.Join(failed, p.sweep())
}

func (p *performing) undo(m move) error {
	now, err := p.textAt(m.Path)
	if err != nil || now != m.After {
		return err
	}
	at := filepath.FromSlash(m.Path)
	if m.Old == "" {
		return p.root.Remove(at)
	}
	old := filepath.FromSlash(m.Old)
	if _, err := p.root.Lstat(old); isMissing(err) { // it has never gone
		return nil
	}
	if err := p.root.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	return p.root.Rename(old, at)
}

// sweep removes what stands beside the files, folders that are empty by the moves, and
// the journal.
func (p *performing) sweep() error {
	for _, m := range p.Moves {
		for _, beside := range []string{m.Draft, m.Old} {
			if beside == "" {
				continue
			}
			if err := p.root.Remove(filepath.FromSlash(beside)); err != nil && !isMissing(err) {
				return err
			}
		}
		if m.After == "" && p.Phase == phasePlaced {
			p.removeEmpty(path.Dir(m.Path))
		}
	}
	if p.Phase != phasePlaced {
		for _, dir := range slices.Backward(p.Made) {
			_ = p.root.Remove(filepath.FromSlash(dir)) // somebody may have put a file there
		}
	}
	p.Crashpoints.At(CrashApplySwept)
	file, err := p.file(".json")
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// removeEmpty removes folders without anything in them, upwards, as git does.
func (p *performing) removeEmpty(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := p.root.Lstat(filepath.FromSlash(dir)); err != nil || !info.IsDir() {
			return
		}
		if p.root.Remove(filepath.FromSlash(dir)) != nil {
			return
		}
	}
}

// lacksDrafts reports whether a new file is neither in its place nor beside it.
func (p *performing) lacksDrafts() (bool, error) {
	for _, m := range p.Moves {
		if m.Draft == "" {
			continue
		}
		_, err := p.root.Lstat(filepath.FromSlash(m.Draft))
		if err == nil {
			continue
		}
		if !isMissing(err) {
			return false, err
		}
		if now, err := p.textAt(m.Path); err != nil || now != m.After {
			return err == nil, err
		}
	}
	return false, nil
}
