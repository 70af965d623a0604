package place

import (
	"context"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Appears returns a channel that is told when state of a project may have come to be:
// when [Finder.Version] may have changed. It watches folders until ctx ends, and closes
// the channel then. Another look is due after the call, since something may have come
// before.
func (f Finder) Appears(ctx context.Context, project string) (<-chan struct{}, error) {
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	watchState(files, project)
	appeared := make(chan struct{}, 1)
	go func() {
		defer close(appeared)
		defer func() { _ = files.Close() }()
		for {
			select {
			case <-files.Events:
			case err := <-files.Errors:
				_ = err // some events were lost, at worst
			case <-ctx.Done():
				return
			}
			watchState(files, project)
			select {
			case appeared <- struct{}{}:
			default:
			}
		}
	}()
	return appeared, nil
}

// watchState watches what is there of the folders that lead to the state of a project.
// A folder that cannot be watched is not the user's.
func watchState(files *fsnotify.Watcher, project string) {
	state := filepath.Join(project, ".ai", "state")
	paths := []string{project, filepath.Dir(state), state}
	if leadsAway(project) == "" {
		entries, _ := os.ReadDir(state)
		for _, e := range entries[:min(len(entries), 2*maxBesides)] {
			paths = append(paths, filepath.Join(state, e.Name()), filepath.Join(state, e.Name(), threadsName))
		}
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			_ = files.Add(path)
		}
	}
}
