package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// Footprint implements [store.Keeper].
func (s *Store) Footprint(context.Context) (store.Footprint, error) { return FootprintOf(s.dir) }

// FootprintOf is the footprint of a store in a folder, which need not be there. Files
// that were set aside as damaged do not count as in use.
func FootprintOf(dir string) (store.Footprint, error) {
	var f store.Footprint
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	used := Files(dir)
	for _, e := range entries {
		base := filepath.Join(dir, strings.TrimSuffix(strings.TrimSuffix(e.Name(), "-wal"), "-shm"))
		switch {
		case slices.Contains(used, base):
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // the log of one that was closed
			}
			if err != nil {
				return f, err
			}
			f.Bytes += info.Size()
			if strings.HasSuffix(e.Name(), "-wal") {
				f.LogBytes += info.Size()
			}
		case strings.Contains(e.Name(), asideMark) && !strings.HasSuffix(e.Name(), "-wal"):
			f.SetAside = append(f.SetAside, e.Name())
		}
	}
	return f, nil
}
