package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Bounds of the copy of a project's settings.
const (
	maxSettingsFile  = 1 << 20
	maxSettingsBytes = 4 << 20
	maxSettingsFiles = 256
	maxSettingsDepth = 8
	maxSettingsNames = 4096 // looked at
)

// Snapshot is what stood in .ai/config of a project at one moment. A person is
// shown a snapshot, and the same snapshot is kept.
type Snapshot struct {
	Files map[string][]byte // by slash-separated path below .ai/config
	// Left are the files that no copy is made of: links, what is no plain file, and
	// what exceeds the bounds.
	Left []Problem
}

// Take reads .ai/config of a project. Links are not followed, and the folders of
// keys are left out.
func Take(project string) (Snapshot, error) {
	s := Snapshot{Files: map[string][]byte{}}
	root, err := resolve.OpenAI(project, item.Project)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the settings of %s: %w", project, err)
	}
	defer func() { _ = root.Close() }() // only read
	t := taking{Snapshot: &s, root: root, dir: filepath.Join(project, ".ai")}
	if info, err := root.Lstat(configDir); err == nil && !info.IsDir() {
		t.leave(configDir, "a link, or no folder")
		return s, nil
	}
	if err := fs.WalkDir(root.FS(), configDir, t.visit); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("read the settings of %s: %w", project, err)
	}
	return s, nil
}

// configDir is where the settings of a space stand, below .ai.
const configDir = "config"

// taking is the walk that makes a snapshot.
type taking struct {
	*Snapshot
	root         *os.Root
	dir          string
	names, bytes int
}

func (t *taking) leave(name, format string, args ...any) {
	t.Left = append(t.Left, Problem{Path: filepath.Join(t.dir, filepath.FromSlash(name)), Reason: fmt.Sprintf(format, args...)})
}

func (t *taking) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if t.names++; t.names > maxSettingsNames {
		t.leave(configDir, "it holds more than %d files", maxSettingsNames)
		return fs.SkipAll
	}
	switch {
	case entry.IsDir() && strings.EqualFold(entry.Name(), "keys"):
		return fs.SkipDir
	case entry.IsDir() && strings.Count(name, "/") > maxSettingsDepth:
		t.leave(name, "a folder below too many others")
		return fs.SkipDir
	case entry.IsDir():
		return nil
	case !entry.Type().IsRegular():
		t.leave(name, "a link, or no plain file")
		return nil
	case len(t.Files) == maxSettingsFiles:
		t.leave(name, "one file more than the %d that are kept", maxSettingsFiles)
		return nil
	}
	data, err := readPlain(t.root, name, min(maxSettingsFile, maxSettingsBytes-t.bytes))
	if err != nil {
		t.leave(name, "%v", err)
		return nil
	}
	t.bytes += len(data)
	t.Files[strings.TrimPrefix(name, configDir+"/")] = data
	return nil
}

// readPlain reads a regular file, through no link.
func readPlain(root *os.Root, name string, most int) ([]byte, error) {
	data, err := regular.ReadIn(root, name, int64(most))
	switch {
	case errors.Is(err, regular.ErrNot):
		return nil, errors.New("a link, or no plain file")
	case errors.Is(err, regular.ErrTooLarge):
		return nil, fmt.Errorf("larger than the %d bytes that are kept", most)
	}
	return data, err
}

// Equal reports whether two snapshots hold the same files.
func (s Snapshot) Equal(o Snapshot) bool { return maps.EqualFunc(s.Files, o.Files, bytes.Equal) }

// Digest names what the files say.
func (s Snapshot) Digest() string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		_, _ = fmt.Fprintf(hash, "%d %s %d\n", len(name), name, len(s.Files[name])) // a hash takes everything
		_, _ = hash.Write(s.Files[name])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// With is the snapshot with one more file, or another content of it.
func (s Snapshot) With(name string, content []byte) Snapshot {
	files := maps.Clone(s.Files)
	if files == nil {
		files = map[string][]byte{}
	}
	files[path.Clean(name)] = content
	return Snapshot{Files: files}
}

// WriteSettings replaces a settings file of a space, whose folder is dir; name is
// its path below .ai/config. No link leads the writing out of .ai.
func WriteSettings(of item.Space, dir, name string, content []byte) error {
	root, err := makeAI(of, dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the file is synced by then
	name = path.Join(configDir, name)
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := root.Lstat(name); err == nil {
		mode = info.Mode().Perm()
	}
	return replaceFile(root, name, content, mode)
}

// makeAI opens the folder .ai of a space, and makes it where there is none.
func makeAI(of item.Space, dir string) (*os.Root, error) {
	if err := os.MkdirAll(filepath.Join(dir, ".ai"), 0o755); err != nil {
		return nil, err
	}
	return resolve.OpenAI(dir, of)
}

// ReadSettings reads a settings file of a space as [Take] does; found is false
// when there is none.
func ReadSettings(of item.Space, dir, name string) (content []byte, found bool, err error) {
	root, err := resolve.OpenAI(dir, of)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = root.Close() }() // only read
	content, err = readPlain(root, path.Join(configDir, name), maxSettingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return content, err == nil, err
}
