package health

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// SweepFolders removes the folders that starts have left which were killed before
// their thread was registered, and returns how many those were. Such a folder has no
// row, no thread.json and no transcript, nobody holds its lock, and it is older than
// what may still be on its way. Anything else in it keeps it.
func (c *Checker) SweepFolders(ctx context.Context) (removed int, err error) {
	var failed []error
	walked := folder.Walk(c.Threads.Home().Dir, func(f folder.Found) error {
		if f.Linked || f.HasMeta || f.HasWords || c.justMade(f.Folder) {
			return context.Cause(ctx)
		}
		switch gone, err := c.removeLeftover(ctx, f); {
		case err != nil:
			failed = append(failed, err)
		case gone:
			removed++
		}
		return context.Cause(ctx)
	})
	return removed, errors.Join(append(failed, walked)...)
}

// removeLeftover removes one folder, with its life in hand, so that nobody makes a
// thread in it meanwhile. Of what is in it only the files of a start are removed.
func (c *Checker) removeLeftover(ctx context.Context, f folder.Found) (bool, error) {
	if err := folder.Check(c.Threads.Home().Dir, f.ID); err != nil {
		return false, nil // somebody else's
	}
	hold, err := c.Threads.Life.Claim(life.Key{Thread: f.ID})
	if errors.Is(err, life.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = hold.Release() }()
	if _, err := c.Threads.Store.Get(ctx, f.ID); !errors.Is(err, thread.ErrNotFound) {
		return false, err
	}
	entries, err := os.ReadDir(string(f.Folder))
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if name := filepath.Join(string(f.Folder), e.Name()); name != f.Folder.Lock() && name != f.Folder.Log() || !e.Type().IsRegular() {
			return false, nil
		}
	}
	for _, name := range []string{f.Folder.Log(), f.Folder.Lock()} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	}
	return true, os.Remove(string(f.Folder))
}
