package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/search"
)

// cacheKept is how long something in the folder of caches is kept that nobody has
// written to. All of it can be made again at any time.
const cacheKept = 90 * 24 * time.Hour

// cacheNames are what this program makes in that folder: indexes of searches, the system
// space on disk, and what the tools of a project keep.
var cacheNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(search-[0-9a-f]{16}-v[0-9]+\.db|(system|tools)/[0-9a-f]{16})$`)
})

// pruneCaches removes what was not written to for long, and returns how many things
// those were. Things that others have put there stay.
func pruneCaches(ctx context.Context, dir string, now time.Time) (removed int, err error) {
	cache, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	for _, in := range []string{".", "system", "tools"} {
		entries, err := fs.ReadDir(cache.FS(), in)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, err
		}
		for _, e := range entries {
			name := path.Join(in, e.Name())
			if e.Type()&fs.ModeSymlink != 0 || !cacheNames().MatchString(name) || now.Sub(lastWritten(cache, name)) < cacheKept {
				continue
			}
			if err := removeCached(cache, name); err != nil {
				return removed, err
			}
			removed++
			if err := context.Cause(ctx); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// sideFiles are those that SQLite keeps beside a database.
var sideFiles = []string{"-wal", "-shm"}

// lastWritten is when something was written to a file, the files beside it, or a folder
// and what is directly in it.
func lastWritten(cache *os.Root, name string) (at time.Time) {
	names := []string{name}
	if strings.HasSuffix(name, ".db") {
		for _, ending := range sideFiles {
			names = append(names, name+ending)
		}
	} else if entries, err := fs.ReadDir(cache.FS(), name); err == nil {
		for _, e := range entries {
			names = append(names, path.Join(name, e.Name()))
		}
	}
	for _, name := range names {
		if info, err := cache.Lstat(name); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

func removeCached(cache *os.Root, name string) error {
	if !strings.HasSuffix(name, ".db") {
		return cache.RemoveAll(name)
	}
	for _, ending := range slices.Concat(sideFiles, []string{""}) {
		if err := cache.Remove(name + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// pruneCaches is a job of the sweep.
func (p *project) pruneCaches(sys System) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		dir, err := search.CacheDir(sys.Getenv)
		if err != nil {
			return "", nil //nolint:nilerr // nothing is kept where there is no place for it
		}
		removed, err := pruneCaches(ctx, dir, sys.Now())
		if removed == 0 {
			return "", err
		}
		return "removed " + counted(removed, "thing") + " that nobody used", err
	}
}

// indexBytes is the size of the project's search index.
func (p *project) indexBytes(sys System) func(context.Context) (int64, error) {
	return func(context.Context) (sum int64, err error) {
		where, err := search.DefaultPath(p.path, p.resolver.Roots().User, sys.Getenv)
		if err != nil {
			return 0, nil //nolint:nilerr // it is in memory
		}
		for _, ending := range slices.Concat(sideFiles, []string{""}) {
			info, err := os.Stat(where + ending)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return sum, err
			}
			sum += info.Size()
		}
		return sum, nil
	}
}
