package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// maxFileSize bounds what is read of a settings file: 1 MiB, a hundred times
// the largest that is shipped.
const maxFileSize = 1 << 20

// place is the .ai folder of one space.
type place interface {
	// read returns a file below config/ and the path to name it by. An absent
	// file is fs.ErrNotExist.
	read(rel string) (data []byte, path string, err error)
	// list returns the names in a folder below config/, none when it is absent.
	list(rel string) ([]string, error)
	// space is the one it belongs to. The files of the project space may be
	// somebody else's work.
	space() item.Space
}

// folder is the place of a user or project space.
type folder struct {
	dir string // holds .ai
	of  item.Space
}

func (f folder) space() item.Space { return f.of }

func (f folder) open() (*os.Root, error) {
	// A Root follows no symlink out of the folder, whatever is done to the folder
	// in the meantime.
	return resolve.OpenAI(f.dir, f.of)
}

func (f folder) pathOf(rel string) string {
	return filepath.Join(f.dir, ".ai", "config", filepath.FromSlash(rel))
}

func (f folder) read(rel string) ([]byte, string, error) {
	name := f.pathOf(rel)
	root, err := f.open()
	if err != nil {
		return nil, name, err
	}
	defer func() { _ = root.Close() }() // only read
	data, err := readIn(root, path.Join("config", rel))
	if leadsOut(err) {
		err = errLeadsOut
	}
	return data, name, err
}

// errLeadsOut says of settings that a link stands in the way.
var errLeadsOut = errors.New("a link leads out of .ai here, and is not followed; put the file itself in its place")

// leadsOut recognises the refusal of [os.Root], whose error value has no name.
func leadsOut(err error) bool {
	refused, ok := errors.AsType[*fs.PathError](err)
	return ok && refused.Err.Error() == "path escapes from parent"
}

func (f folder) list(rel string) ([]string, error) {
	names, err := f.names(rel, -1)
	slices.Sort(names)
	return names, err
}

// names are those in a folder below config/, at most so many of them, in no order;
// none when it is absent. A named pipe in its place is refused: to open one would wait
// for a writer.
func (f folder) names(rel string, most int) ([]string, error) {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	inside, err := resolve.OpenFolder(root, path.Join("config", rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = inside.Close() }() // only read
	dir, err := inside.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read
	names, err := dir.Readdirnames(most)
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	return names, err
}

// embedded is the place of the system space.
type embedded struct {
	files fs.FS // may be nil
}

func (embedded) space() item.Space { return item.System }

func (e embedded) read(rel string) ([]byte, string, error) {
	name := path.Join("config", rel)
	if e.files == nil {
		return nil, "system:" + name, fs.ErrNotExist
	}
	data, err := readRegular(e.files, name)
	return data, "system:" + name, err
}

func (e embedded) list(rel string) ([]string, error) {
	if e.files == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(e.files, path.Join("config", rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

// readIn reads a regular file, through links that stay below the root.
func readIn(root *os.Root, name string) ([]byte, error) {
	file, _, err := regular.FollowIn(root, name)
	if errors.Is(err, regular.ErrNot) {
		return nil, regular.ErrNot
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return bounded(file)
}

// readRegular reads a file of the system space.
func readRegular(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return bounded(file)
}

func bounded(file io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileSize {
		return nil, fmt.Errorf("larger than %d bytes", maxFileSize)
	}
	return data, nil
}

// kept is the copy of a project's settings that its user has accepted, or any
// other snapshot of them.
type kept struct {
	dir   string // of the project
	files map[string][]byte
	note  string // behind the path of a file
}

func (kept) space() item.Space { return item.Project }

func (k kept) read(rel string) ([]byte, string, error) {
	name := filepath.Join(k.dir, ".ai", "config", filepath.FromSlash(rel)) + k.note
	data, ok := k.files[rel]
	if !ok {
		return nil, name, fs.ErrNotExist
	}
	return data, name, nil
}

func (k kept) list(rel string) ([]string, error) {
	var names []string
	for name := range k.files {
		if path.Dir(name) == rel {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// File returns the first file with the given slash-separated path below config/
// and where it was found: project, user and system space, in this order. A
// project's counts as far as its user has accepted it. Without one the error is
// fs.ErrNotExist; a path that leaves config/ is fs.ErrInvalid.
func (sn *Snapshot) File(rel string) ([]byte, string, error) {
	if !fs.ValidPath(rel) || rel == "." || strings.ContainsFunc(rel, unfit) {
		return nil, "", fmt.Errorf("config file %q: %w: want a path that stays below .ai/config, with / between its parts", rel, fs.ErrInvalid)
	}
	project := sn.project()
	whole, notice := project.whole(rel)
	for _, place := range slices.Backward(slices.Concat(sn.own, whole)) {
		data, name, err := place.read(rel)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, name, fmt.Errorf("config file %s: %w", name, err)
		}
		return data, name, nil
	}
	err := fmt.Errorf("config file %q in the project, user or system space: %w", rel, fs.ErrNotExist)
	if notice != nil {
		err = fmt.Errorf("%w; %s", err, notice)
	}
	return nil, "", err
}

// unfit reports runes that have no place in a path.
func unfit(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }
