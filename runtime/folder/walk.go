package folder

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// Found is a thread folder as it lies on disk.
type Found struct {
	ID       thread.ID
	Folder   Folder
	Linked   bool // a symbolic link, which is not followed
	HasMeta  bool
	HasWords bool // a transcript
	HasLocks bool // life locks, which somebody may hold
	HasRuns  bool // locks among those that have the names of runs
}

// Walk calls visit for every thread folder below stateDir, in the order of their
// names, until visit returns an error. A folder is a thread's when it holds one of
// a thread's files. A state folder that does not exist, or has no name, has none.
func Walk(stateDir string, visit func(Found) error) error {
	_, err := WalkSome(stateDir, math.MaxInt, visit)
	return err
}

// WalkSome is [Walk] that visits some folders, at most, and reports whether those were
// all. Its cost does not grow with the number of folders beyond that. The file
// system decides which ones it visits.
func WalkSome(stateDir string, most int, visit func(Found) error) (all bool, err error) {
	if stateDir == "" {
		return true, nil
	}
	w := walker{stateDir: stateDir, most: most, threads: most, folders: most, visit: visit}
	if most < math.MaxInt/2 {
		w.folders = 2 * most // with those that are between
	}
	err = w.walk("")
	if errors.Is(err, errEnough) {
		return false, nil
	}
	return !w.cut, err
}

// errEnough ends a walk that may visit no more.
var errEnough = errors.New("enough folders were visited")

// walker goes through the folders of threads.
type walker struct {
	stateDir string
	most     int  // entries that are read of a folder
	threads  int  // threads' folders that may still be visited
	folders  int  // folders that may still be read
	cut      bool // a folder has more entries
	visit    func(Found) error
}

func (w *walker) walk(below string) error {
	if w.folders == 0 {
		return errEnough
	}
	w.folders--
	entries, err := w.read(filepath.Join(w.stateDir, below))
	if errors.Is(err, fs.ErrNotExist) { // or removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	here := Found{ID: thread.ID(filepath.ToSlash(below)), Folder: Of(w.stateDir, thread.ID(filepath.ToSlash(below)))}
	isThread := below != "" && here.look(entries)
	if isThread {
		if err := w.found(here); err != nil {
			return err
		}
	}
	for _, e := range entries {
		name := filepath.Join(below, e.Name())
		switch {
		case isThread && e.Name() == filepath.Base(here.Folder.Artifacts()):
		case below == "" && isReserved(e.Name()):
		case e.Type()&fs.ModeSymlink != 0 && !strings.Contains(e.Name(), "."):
			id := thread.ID(filepath.ToSlash(name))
			if err := w.found(Found{ID: id, Folder: Of(w.stateDir, id), Linked: true}); err != nil {
				return err
			}
		case e.IsDir():
			if err := w.walk(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// found visits a folder, unless enough were visited.
func (w *walker) found(f Found) error {
	if w.threads == 0 {
		return errEnough
	}
	w.threads--
	return w.visit(f)
}

// read is os.ReadDir of at most so many entries.
func (w *walker) read(dir string) ([]fs.DirEntry, error) {
	if w.most == math.MaxInt {
		return os.ReadDir(dir)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, more, err := regular.ListSome(f, w.most)
	w.cut = w.cut || more
	return entries, err
}

// look finds out by the entries of a folder what it has, and whether it is a thread's.
func (f *Found) look(entries []fs.DirEntry) bool {
	has := func(path string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == filepath.Base(path) })
	}
	f.HasMeta, f.HasWords = has(f.Folder.Meta()), has(f.Folder.Transcript()) || has(f.Folder.Compressed())
	f.HasLocks, f.HasRuns = slices.ContainsFunc(entries, isLock), slices.ContainsFunc(entries, isRunLock)
	return f.HasMeta || f.HasWords || f.HasLocks
}

// Look finds the folder of one thread as [Walk] would. It finds a symbolic link
// that is on the way in its place, whose id is then another. Without a folder it finds nothing.
func Look(stateDir string, id thread.ID) (f Found, found bool, err error) {
	below := ""
	for segment := range strings.SplitSeq(string(id), "/") {
		below = path.Join(below, segment)
		f = Found{ID: thread.ID(below), Folder: Of(stateDir, thread.ID(below))}
		info, err := os.Lstat(string(f.Folder))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Found{}, false, nil
		case err != nil:
			return Found{}, false, err
		case info.Mode()&fs.ModeSymlink != 0:
			f.Linked = true
			return f, true, nil
		}
	}
	entries, err := os.ReadDir(string(f.Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return Found{}, false, nil
	}
	return f, f.look(entries), err
}
