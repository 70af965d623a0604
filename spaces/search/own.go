package search

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// sideFiles are the endings of the files of one database.
var sideFiles = []string{"", "-wal", "-shm"}

// CheckPlace says why an index would not be kept at a path. The path need not exist.
func CheckPlace(path string, roots resolve.Roots) error {
	err := own(path, roots)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// own refuses a place for the index where somebody else could have put one, or could
// change it: in the project, which may be a stranger's, in a folder that others
// write, and in the place of a link or of a file of others. It may lie there from
// before, and say that an item is not there that is.
func own(path string, roots resolve.Roots) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	if pathname.Holds(roots.Project, dir) && roots.Project != roots.User { // at home all of it is the user's
		return fmt.Errorf("%s is in the project, whose files may be a stranger's", dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("others can write %s", dir)
	}
	for _, suffix := range sideFiles {
		name := filepath.Join(dir, filepath.Base(path)+suffix)
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		case othersWrite(info) || !isOurs(info):
			return fmt.Errorf("%s belongs to somebody else, or others can write it", name)
		}
	}
	return nil
}
