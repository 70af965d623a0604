package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// after is the mark of the file that a step writes.
func (s step) after() (string, error) {
	dir, err := os.OpenRoot(filepath.Dir(s.source))
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }() // only read
	m, err := markAt(dir, filepath.Base(s.source))
	m.exec = s.exec && m.kind == kindFile
	return m.text(), err
}

// draft writes each new file beside its place.
func (p *performing) draft(steps []step) error {
	for i, s := range steps {
		if s.source == "" {
			continue
		}
		if err := p.copyIn(s, p.Moves[i].Draft); err != nil {
			return err
		}
		p.Crashpoints.At(CrashApplyDrafted)
	}
	return p.syncDrafts()
}

// syncDrafts waits until all new files are on the disk.
func (p *performing) syncDrafts() error {
	var names []string
	for _, m := range p.Moves {
		if m.Draft != "" && !strings.HasPrefix(m.After, kindLink+" ") {
			names = append(names, m.Draft)
		}
	}
	return syncAll(p.root, names)
}

// syncedAtOnce is how many files wait for the disk at a time, which takes them together.
const syncedAtOnce = 8

// syncAll waits until files or folders are on the disk. One after the other, and each as it
// is written, thousands of them take minutes.
func syncAll(root *os.Root, names []string) error {
	queue := make(chan string)
	failed := make([]error, min(syncedAtOnce, len(names)))
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() {
			for name := range queue {
				failed[i] = errors.Join(failed[i], syncFile(root, name))
			}
		})
	}
	for _, name := range names {
		queue <- name
	}
	close(queue)
	all.Wait()
	return errors.Join(failed...)
}

func syncFile(root *os.Root, name string) error {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|regular.NonBlock, 0) // a folder can be one
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (p *performing) copyIn(s step, draft string) error {
	name := filepath.FromSlash(draft)
	info, err := os.Lstat(s.source)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(s.source)
		if err != nil {
			return err
		}
		return p.root.Symlink(to, name)
	}
	from, _, err := regular.Open(s.source)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // only read
	mode, exact := fs.FileMode(0o666), s.info != nil && s.info.Mode().IsRegular()
	if exact { // it keeps who may read it
		mode = s.info.Mode().Perm() &^ 0o111
	}
	if s.exec {
		mode |= mode & 0o444 >> 2
	}
	to, err := fill(p.root, name, from, os.O_EXCL, mode, exact)
	if err != nil {
		return err
	}
	return to.Close()
}

// fill writes a file, which the caller closes. The umask changes a mode that is not exact.
func fill(root *os.Root, name string, from io.Reader, how int, mode fs.FileMode, exact bool) (*os.File, error) {
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|regular.NonBlock|how, mode)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(to, from)
	if err == nil && exact {
		err = to.Chmod(mode)
	}
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

// unchanged looks whether every file is still what was looked at.
func (p *performing) unchanged(steps []step) error {
	var moved []Conflict
	for _, s := range steps {
		info, err := p.root.Lstat(filepath.FromSlash(s.path))
		if isMissing(err) || err == nil && info.IsDir() && s.info == nil {
			info, err = nil, nil
		}
		if err != nil {
			return err
		}
		same := (info == nil) == (s.info == nil)
		if same && info != nil {
			same = os.SameFile(info, s.info) && info.ModTime().Equal(s.info.ModTime()) && info.Size() == s.info.Size() && info.Mode() == s.info.Mode()
		}
		if !same {
			moved = append(moved, Conflict{Path: shownPath(s.path), Kind: kindMeanwhile, Here: "modified"})
		}
	}
	if len(moved) > 0 {
		return &ConflictError{moved}
	}
	return nil
}
