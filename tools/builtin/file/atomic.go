package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// newFileMode is what new files get, before the umask.
const newFileMode fs.FileMode = 0o666

// writer changes files, one call of this process at a time: edit_lines reads,
// changes and writes, and models make several calls at once.
type writer struct{ mu sync.Mutex }

// replace writes data to rel so that a reader, or a crash, finds the old
// content or the new one and nothing between. Old is the file that stands
// there, whose permissions stay; nil for a new one.
func (p *project) replace(rel string, data []byte, old fs.FileInfo) (err error) {
	temp := inDir(rel, ".rye-"+rand.Text()+".tmp")
	mode := newFileMode
	if old != nil {
		mode = old.Mode().Perm()
	}
	f, err := p.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return explain(rel, err)
	}
	defer func() {
		if err != nil {
			err = explain(rel, errors.Join(err, p.Remove(temp)))
		}
	}()
	err = fill(f, data, old)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return p.Rename(temp, rel)
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

// maxLinks bounds a chain of symbolic links, as common kernels do.
const maxLinks = 40

// target follows the symbolic links that rel itself is, so that replacing
// changes the file they lead to and leaves the links. It also says what is
// there; info is nil for a file that does not exist.
func (p *project) target(rel string) (string, fs.FileInfo, error) {
	for range maxLinks {
		info, err := p.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) {
			return rel, nil, nil
		}
		if err != nil {
			return "", nil, explain(rel, err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return rel, info, checkRegular(rel, info)
		}
		link, err := p.Readlink(rel)
		if err != nil {
			return "", nil, explain(rel, err)
		}
		if filepath.IsAbs(link) {
			return "", nil, outside(link)
		}
		rel = inDir(rel, link)
	}
	return "", nil, explain(rel, fmt.Errorf("more than %d symbolic links", maxLinks))
}

// dirOf is the folder of rel. Unlike [filepath.Dir] it does not clean: ".."
// after a linked folder means that folder's parent, which os.Root works out.
func dirOf(rel string) string {
	i := strings.LastIndexByte(rel, filepath.Separator)
	if i < 0 {
		return "."
	}
	return rel[:i]
}

// inDir names a neighbour of rel.
func inDir(rel, name string) string {
	if dir := dirOf(rel); dir != "." {
		return dir + string(filepath.Separator) + name
	}
	return name
}

// checkParent says whether the folder of rel exists, or may be made.
func (p *project) checkParent(rel string, create bool) error {
	parent := dirOf(rel)
	info, err := p.Stat(parent)
	shown := filepath.ToSlash(parent)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return tool.Faultf(tool.CodeBadArguments, "%q is not a directory", shown).With("path", shown)
	case !errors.Is(err, fs.ErrNotExist):
		return explain(parent, err)
	case create:
		return nil
	default:
		return tool.Faultf(tool.CodeNotFound, "the directory %q does not exist", shown).With("path", shown).
			WithHint("Set create_dirs to true to have it made.")
	}
}
