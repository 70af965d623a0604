package resolve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// ErrLedAway says that .ai of a project is a link that leads out of it. Such a
// folder counts as missing: the error is an fs.ErrNotExist too.
var ErrLedAway = fmt.Errorf("it leads out of the project: %w", fs.ErrNotExist)

// OpenAI opens the folder .ai of a space on disk. In the user space it may be a
// link, by which people keep it elsewhere. In a project, which may be a
// stranger's, it may be none that leads out: a clone would say what is read of
// this machine.
func OpenAI(dir string, of item.Space) (*os.Root, error) {
	if of == item.User {
		return os.OpenRoot(filepath.Join(dir, ".ai"))
	}
	project, err := os.OpenRoot(dir)
	if err != nil {
		if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR} // os.OpenRoot has no error value for it
		}
		return nil, err
	}
	defer func() { _ = project.Close() }() // the folder in it stays open
	ai, err := OpenFolder(project, ".ai")
	if err != nil && !errors.Is(err, fs.ErrNotExist) && isLink(project) {
		return nil, fmt.Errorf("open %s: %w", filepath.Join(dir, ".ai"), ErrLedAway)
	}
	return ai, err
}

// OpenFolder opens a folder below another one, both of which may be a stranger's. What
// is no folder is refused: [os.Root.OpenRoot] alone would wait for the writer of a
// named pipe.
func OpenFolder(in *os.Root, name string) (*os.Root, error) {
	folder, err := in.OpenRoot(filepath.FromSlash(name) + string(filepath.Separator) + ".") // so all that it names are folders
	if refused, ok := errors.AsType[*fs.PathError](err); ok {
		refused.Path = name
	}
	return folder, err
}

func isLink(project *os.Root) bool {
	info, err := project.Lstat(".ai")
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
