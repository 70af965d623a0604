// Package watch tells when the items of a project and of its user may have changed, so
// that nobody has to look again and again. It knows folders; what has changed in
// them is for others to find out.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// maxFolders bounds what is watched: systems have some 8 000 watches for a user, who
// has other programs. Changes in folders beyond it are not told.
const maxFolders = 1000

// Calm is how long a change is waited for others after it: an editor writes a file in
// several steps, and a checkout many files.
const Calm = 200 * time.Millisecond

// Watch knows the folders of items.
type Watch struct {
	roots []string
	files *fsnotify.Watcher
	calm  time.Duration
}

// New watches the spaces of roots that have files. It tells changes from now on. An
// error means that the system has no watch left.
func New(roots resolve.Roots, calm time.Duration) (*Watch, error) {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the folders of items: %w", err)
	}
	w := &Watch{files: files, calm: calm}
	for _, root := range []string{roots.Project, roots.User} {
		if root != "" {
			w.roots = append(w.roots, root)
		}
	}
	if err := w.add(); err != nil {
		return nil, errors.Join(fmt.Errorf("watch the folders of items: %w", err), files.Close())
	}
	return w, nil
}

// Run calls changed after changes until ctx ends or nothing is reported any more, and
// then frees the watch.
func (w *Watch) Run(ctx context.Context, changed func()) {
	defer func() { _ = w.files.Close() }() // it only read
	var calm <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-w.files.Events:
			if !open {
				return
			}
			if calm == nil && w.concerns(e) {
				calm = time.After(w.calm)
			}
		case err := <-w.files.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return
			}
			calm = time.After(w.calm)
		case <-calm:
			calm = nil
			_ = w.add() // of a folder that is not watched the next change above it tells again
			changed()
		}
	}
}

// concerns tells whether a report is about items: in the folder of a project, and in
// a home, everything else happens too.
func (w *Watch) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	for _, root := range w.roots {
		if filepath.Dir(e.Name) == root {
			return filepath.Base(e.Name) == ".ai"
		}
	}
	return true
}

// add watches the folders that there are. Those that are watched already stay so.
func (w *Watch) add() error {
	left := maxFolders
	for _, root := range w.roots {
		ai := filepath.Join(root, ".ai")
		if info, err := os.Stat(ai); err != nil || !info.IsDir() {
			if err := w.files.Add(root); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		folders := []string{ai, filepath.Join(ai, "config"), filepath.Join(ai, "config", "keys"), filepath.Join(ai, "config", "keys", "trusted")}
		for _, folder := range resolve.Folders() {
			folders = append(folders, below(filepath.Join(root, filepath.FromSlash(folder)), left)...)
		}
		for _, folder := range folders[:min(left, len(folders))] {
			if err := w.files.Add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		left -= min(left, len(folders))
	}
	return nil
}

// below lists a folder and those in it that hold items, at most so many.
func below(top string, most int) []string {
	var folders []string
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case len(folders) >= most:
			return fs.SkipAll
		case err != nil || !d.IsDir():
			return nil //nolint:nilerr // a folder that cannot be read has no items
		case path != top && resolve.Skipped(d.Name()):
			return fs.SkipDir
		}
		folders = append(folders, path)
		return nil
	})
	return folders
}
