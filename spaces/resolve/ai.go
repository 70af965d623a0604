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
	if info, statErr := os.Stat(dir); err != nil && statErr == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR} // os.OpenRoot has no error value for it
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = project.Close() }() // the folder in it stays open
	ai, err := project.OpenRoot(".ai")
	if err != nil && !errors.Is(err, fs.ErrNotExist) && isLink(project) {
		return nil, fmt.Errorf("open %s: %w", filepath.Join(dir, ".ai"), ErrLedAway)
	}
	return ai, err
}

func isLink(project *os.Root) bool {
	info, err := project.Lstat(".ai")
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
