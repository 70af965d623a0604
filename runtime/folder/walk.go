package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Found is a thread folder as it lies on disk.
type Found struct {
	ID       thread.ID
	Folder   Folder
	Linked   bool // a symbolic link, which is not followed
	HasMeta  bool
	HasWords bool // a transcript
}

// Walk calls visit for every thread folder below stateDir, in the order of their
// names, until visit returns an error. A folder is a thread's when it holds one of
// a thread's files. A state folder that does not exist, or has no name, has none.
func Walk(stateDir string, visit func(Found) error) error {
	if stateDir == "" {
		return nil
	}
	err := walk(stateDir, "", visit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func walk(stateDir, below string, visit func(Found) error) error {
	entries, err := os.ReadDir(filepath.Join(stateDir, below))
	if err != nil {
		return err
	}
	here := Found{ID: thread.ID(filepath.ToSlash(below)), Folder: Of(stateDir, thread.ID(filepath.ToSlash(below)))}
	has := func(path string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == filepath.Base(path) })
	}
	here.HasMeta, here.HasWords = has(here.Folder.Meta()), has(here.Folder.Transcript())
	isThread := below != "" && (here.HasMeta || here.HasWords || has(here.Folder.Lock()))
	if isThread {
		if err := visit(here); err != nil {
			return err
		}
	}
	for _, e := range entries {
		name := filepath.Join(below, e.Name())
		switch {
		case isThread && e.Name() == filepath.Base(here.Folder.Artifacts()):
		case e.Type()&fs.ModeSymlink != 0 && !strings.Contains(e.Name(), "."):
			id := thread.ID(filepath.ToSlash(name))
			if err := visit(Found{ID: id, Folder: Of(stateDir, id), Linked: true}); err != nil {
				return err
			}
		case e.IsDir():
			if err := walk(stateDir, name, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
