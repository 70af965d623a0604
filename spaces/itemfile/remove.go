package itemfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// ErrLinked says that something else than a folder is on the way to a file or folder, so
// that what lies behind it is somebody else's.
var ErrLinked = errors.New("is not followed, as it is a symbolic link or no folder")

// Remove removes files of a folder below another, each if it is one: what it begins with
// is asked for. A symbolic link in the place of a file is removed and not followed; one on
// the way to the folder is ErrLinked, and nothing is removed. A file that is not there is
// no error. All are tried; the error joins those of the files that stay.
func Remove(dir, folder string, names []string, isOne func(name string, head []byte) bool) (err error) {
	above, _, err := Above(dir, folder+"/")
	if err != nil || above == nil {
		return err
	}
	defer func() { err = errors.Join(err, above.Close()) }()
	var failed []error
	for _, name := range names {
		if err := remove(above, name, isOne); err != nil {
			failed = append(failed, fmt.Errorf("remove %s: %w", path.Join(folder, name), err))
		}
	}
	return errors.Join(failed...)
}

func remove(above *os.Root, name string, isOne func(name string, head []byte) bool) error {
	info, err := above.Lstat(name)
	if err != nil || info.IsDir() {
		return gone(err)
	}
	if info.Mode().IsRegular() {
		head, err := headOf(above, name)
		if err != nil || !isOne(name, head) {
			return gone(err)
		}
	}
	return gone(above.Remove(name))
}

// headBytes is how much of a file is read to know what it is.
const headBytes = 16 << 10

func headOf(in *os.Root, name string) (head []byte, err error) {
	f, _, err := regular.OpenIn(in, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, headBytes))
}

// Above opens the folder above a path below another; nil where there is none.
func Above(dir, below string) (above *os.Root, name string, err error) {
	if above, err = os.OpenRoot(dir); err != nil {
		return nil, "", gone(err)
	}
	dir, name = path.Split(below)
	for segment := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if segment == "" {
			continue
		}
		next, err := Enter(above, segment)
		_ = above.Close() // only read
		if err != nil {
			return nil, "", gone(err)
		}
		above = next
	}
	return above, name, nil
}

// Enter opens a folder that is no link.
func Enter(above *os.Root, name string) (*os.Root, error) {
	info, err := above.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s %w", filepath.Join(above.Name(), name), ErrLinked)
	}
	below, err := above.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := below.Stat(".")
	if err == nil && !os.SameFile(info, now) { // exchanged since
		err = fmt.Errorf("%s %w", filepath.Join(above.Name(), name), ErrLinked)
	}
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return below, nil
}

// gone is nil for what is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
