package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
)

const (
	// maxNameBytes is the longest last segment of an id: the thread's rendering has
	// the same name, with an ending, and is written under a longer one first.
	maxNameBytes = 255 - len(".") - len(".md") - len("18446744073709551615")
	// deepest is the longest path below a thread's folder, while it is written.
	deepest = len("/artifacts/.") + 64 + len(".webp") + len("18446744073709551615")
)

// maxPathBytes is the longest path of the system, with the byte that ends it.
func maxPathBytes() int {
	if runtime.GOOS == "darwin" {
		return 1024
	}
	return 4096
}

// Check refuses an id whose folder could not be used, before anything is made:
// the names would be too long for the file system, or what lies there already is
// a symbolic link, no folder, or somebody else's.
func Check(stateDir string, id thread.ID) error {
	if stateDir == "" {
		return fmt.Errorf("%.40s… %w: the project has no folder for threads", id, thread.ErrUnfit)
	}
	if _, err := thread.ParseID(string(id)); err != nil {
		return err
	}
	if first, _, _ := strings.Cut(string(id), "/"); isReserved(first) {
		return fmt.Errorf("%s %w: the folder %s is for something else", id, thread.ErrUnfit, first)
	}
	if name := path.Base(string(id)); len(name) > maxNameBytes {
		return fmt.Errorf("%.40s… %w: its name has %d bytes, and %d are possible", id, thread.ErrUnfit, len(name), maxNameBytes)
	}
	dir := string(Of(stateDir, id))
	if longest := len(dir) + deepest; longest >= maxPathBytes() {
		return fmt.Errorf("%.40s… %w: its files would have paths of %d bytes, and %d are possible", id, thread.ErrUnfit, longest, maxPathBytes()-1)
	}
	at := stateDir
	for segment := range strings.SplitSeq("./"+string(id), "/") {
		at = filepath.Join(at, segment)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if why := unfit(info, os.Geteuid()); why != "" {
			return fmt.Errorf("%s %w: it %s", at, thread.ErrUnfit, why)
		}
	}
	return nil
}

// Prepare checks the folder of a thread and makes it.
func Prepare(stateDir string, id thread.ID) error {
	if err := Check(stateDir, id); err != nil {
		return err
	}
	return Of(stateDir, id).Make()
}

// unfit says what is wrong with a folder for the user; empty when nothing is.
func unfit(info fs.FileInfo, user int) string {
	switch owner, known := place.OwnerOf(info); {
	case info.Mode()&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case !info.IsDir():
		return "is a file"
	case known && user != 0 && owner != user: // root may use what is anybody's
		return fmt.Sprintf("belongs to user %d, and this process runs as user %d", owner, user)
	}
	return ""
}
