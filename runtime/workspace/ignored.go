package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// asideFolder has the files that git ignores while the others of a workspace are made again.
const asideFolder = "ignored"

// setAside moves files of the tree out of it. Files that a crash has left there stay.
func (s *space) setAside(files []string) error {
	return s.inside(func(root *os.Root) error {
		for _, name := range files {
			if err := moveIn(root, path.Join("tree", name), path.Join(asideFolder, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// bringBack moves the files that were set aside into the tree again, where it has no others of
// their names.
func (s *space) bringBack() error {
	return s.inside(func(root *os.Root) error {
		err := filepath.WalkDir(filepath.Join(s.dir, asideFolder), func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(s.dir, at)
			if err != nil {
				return err
			}
			to := path.Join("tree", filepath.ToSlash(name)[len(asideFolder):])
			if !isFree(root, to) {
				return nil
			}
			return moveIn(root, name, to)
		})
		if isMissing(err) {
			return nil
		}
		return errors.Join(err, root.RemoveAll(asideFolder))
	})
}

// isFree reports whether a path has nothing, and nothing but folders above it: a link that came with
// the tree may lead anywhere.
func isFree(root *os.Root, name string) bool {
	if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for name = path.Dir(name); name != "."; name = path.Dir(name) {
		if is, err := root.Lstat(name); err == nil && !is.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// inside does something in the folder of the workspace, out of which no link leads.
func (s *space) inside(do func(*os.Root) error) error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written by it
	return do(root)
}

func moveIn(root *os.Root, from, to string) error {
	if err := root.MkdirAll(path.Dir(to), 0o700); err != nil {
		return err
	}
	return root.Rename(from, to)
}
