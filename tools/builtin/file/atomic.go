package file

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// newFileMode is what new files get, before the umask.
const newFileMode fs.FileMode = 0o666

// writer changes files, one call of this process at a time: edit_lines reads,
// changes and writes, and models make several calls at once.
type writer struct{ mu sync.Mutex }

// replace writes data to a place so that a reader, or a crash, finds the old
// content or the new one and nothing between. The permissions of a file that
// stands there stay.
func (pl *place) replace(data []byte) (err error) {
	in, old := pl.in(), pl.info
	temp := ".rye-" + rand.Text() + ".tmp"
	mode := newFileMode
	if old != nil {
		mode = old.Mode().Perm()
	}
	f, err := in.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return explain(pl.asked, err)
	}
	defer func() {
		if err != nil {
			err = explain(pl.asked, errors.Join(err, in.Remove(temp)))
		}
	}()
	err = fill(f, data, old)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = pl.confirm()
	}
	if err != nil {
		return err
	}
	return in.Rename(temp, pl.name)
}

// fill writes data down to the disk. An old file's mode is set again, because
// creating applies the umask to it.
func fill(f *os.File, data []byte, old fs.FileInfo) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	return f.Sync()
}

// checkTarget says whether a file can be put to a place. Info of a place is nil
// for a file that does not exist.
func (pl *place) checkTarget(createDirs bool) error {
	if pl.info != nil {
		return checkRegular(pl.asked, pl.info)
	}
	if len(pl.missing) == 0 || createDirs {
		return nil
	}
	shown := filepath.ToSlash(filepath.Dir(pl.asked))
	return tool.Faultf(tool.CodeNotFound, "the directory %q does not exist", shown).With("path", shown).
		WithHint("Set create_dirs to true to have it made.")
}
