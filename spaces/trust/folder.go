package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// trustedDir is where a space keeps its documents, below .ai.
const trustedDir = "config/keys/trusted"

// documentName is the form of a document's name.
var documentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{16}\.toml$`) })

// maxDocuments bounds how many documents of a space are read, since a project's
// folder may be somebody else's work.
const maxDocuments = 256

// othersWrite is the permission bit that lets every account change a file.
const othersWrite = 0o002

// Problem is a file or folder that was left out.
type Problem struct {
	Space  item.Space
	Path   string
	Reason string
	Mend   string // the command that mends it; may be empty
}

// file is a document as it was found.
type file struct {
	space item.Space
	name  string // without its folder
	path  string
	data  []byte
}

// reader collects the documents of the spaces and what is wrong with them.
type reader struct {
	files    []file
	problems []Problem
}

// readSpaces reads the documents of all spaces. A project that is the user's own
// space is read as the user's.
func readSpaces(roots resolve.Roots) *reader {
	r := &reader{}
	if roots.System != nil {
		r.embedded(roots.System)
	}
	if roots.User != "" {
		r.folder(item.User, roots.User)
	}
	if roots.Project != "" && !sameSpace(roots.User, roots.Project) {
		r.folder(item.Project, roots.Project)
	}
	return r
}

func sameSpace(a, b string) bool {
	if a == "" {
		return false
	}
	infoA, errA := os.Stat(filepath.Join(a, ".ai"))
	infoB, errB := os.Stat(filepath.Join(b, ".ai"))
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func (r *reader) problem(space item.Space, path string, err error) {
	p := Problem{Space: space, Path: path, Reason: err.Error()}
	if open, ok := errors.AsType[*writableError](err); ok {
		p.Mend = open.mend()
	}
	r.problems = append(r.problems, p)
}

// writableError says that every account of the machine may change a file.
type writableError struct {
	path string
	mode fs.FileMode
}

func (e *writableError) Error() string {
	return fmt.Sprintf("everybody can change %s (mode %04o); run: %s", e.path, e.mode.Perm(), e.mend())
}

func (e *writableError) mend() string { return "chmod o-w " + shellWord(e.path) }

func checkMode(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&othersWrite != 0 {
		return &writableError{path: path, mode: info.Mode()}
	}
	return nil
}

// folder reads the documents of a space on disk. Nothing below .ai may lead out.
func (r *reader) folder(space item.Space, dir string) {
	name := filepath.Join(dir, ".ai", filepath.FromSlash(trustedDir))
	root, err := openTrusted(space, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.problem(space, name, err)
		return
	}
	defer func() { _ = root.Close() }() // only read
	info, err := root.Stat(".")
	if err == nil {
		err = checkMode(name, info)
	}
	if err != nil {
		r.problem(space, name, err)
		return
	}
	for _, base := range r.list(space, name, root.FS(), ".") {
		file := file{space: space, name: base, path: filepath.Join(name, base)}
		if file.data, err = readDocument(root, base, file.path); err != nil {
			r.problem(space, file.path, err)
			continue
		}
		r.files = append(r.files, file)
	}
}

func openTrusted(space item.Space, dir string) (*os.Root, error) {
	ai, err := resolve.OpenAI(dir, space)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ai.Close() }() // the folder in it stays open
	return resolve.OpenFolder(ai, trustedDir)
}

// list returns the names of the documents in a folder.
func (r *reader) list(space item.Space, name string, files fs.FS, dir string) []string {
	entries, err := fs.ReadDir(files, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.problem(space, name, err)
	}
	var names []string
	for _, entry := range entries {
		switch base := entry.Name(); {
		case documentName().MatchString(base):
			names = append(names, base)
		case strings.HasSuffix(base, ".toml"):
			r.problem(space, name, fmt.Errorf("%q is not named after a fingerprint, such as 0123456789abcdef.toml", base))
		}
	}
	if len(names) > maxDocuments {
		r.problem(space, name, fmt.Errorf("it holds %d documents; the first %d are read", len(names), maxDocuments))
		names = names[:maxDocuments]
	}
	return names
}

// readDocument reads a regular file, through no link.
func readDocument(root *os.Root, name, path string) (data []byte, err error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, errors.New("a symbolic link; put the document itself here")
	}
	file, info, err := regular.Seen(root, name, before)
	switch {
	case errors.Is(err, regular.ErrNot):
		return nil, regular.ErrNot
	case errors.Is(err, regular.ErrReplaced):
		return nil, errors.New("it was replaced while it was read")
	case err != nil:
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	if err := checkMode(path, info); err != nil {
		return nil, err
	}
	// One byte too many shows that there is more.
	return io.ReadAll(io.LimitReader(file, maxDocument+1))
}

// embedded reads the documents of the system space.
func (r *reader) embedded(files fs.FS) {
	const name = "system:" + trustedDir
	for _, base := range r.list(item.System, name, files, trustedDir) {
		data, err := fs.ReadFile(files, path.Join(trustedDir, base))
		if err != nil {
			r.problem(item.System, name+"/"+base, err)
			continue
		}
		r.files = append(r.files, file{space: item.System, name: base, path: name + "/" + base, data: data})
	}
}
