package resolve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// space is the folder of one kind in one space. On disk it is an [os.Root]: no
// id and no symbolic link leads out of it, not even one that changes while we
// look. So an id of a directive reads directives and nothing else of .ai, such
// as its keys.
type space struct {
	kind  item.Kind
	name  item.Space
	root  *os.Root      // nil in the system space
	fsys  fs.FS         // nil on disk
	place *claude.Place // whose folder it is; nil for one of .ai
	dir   string        // the directory that holds the space
}

// open returns the spaces that have a folder for the kind, in order of
// precedence; without an id those where any item can be. The caller closes them.
func (r *Resolver) open(kind item.Kind, id string) ([]space, error) {
	if kind.Dir() == "" {
		return nil, fmt.Errorf("%q is not a kind of item", kind)
	}
	var spaces []space
	for _, s := range []struct {
		name item.Space
		dir  string
	}{{item.Project, r.roots.Project}, {item.User, r.roots.User}} {
		root, err := openKind(s.dir, s.name, kind)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the %s space cannot be opened: %w", s.name, err), closeAll(spaces))
		}
		opened := []space{{kind: kind, name: s.name, root: root, dir: s.dir}}
		for _, more := range append(opened, openPlaces(s.dir, s.name, kind, id)...) {
			if more.root == nil {
				continue
			}
			// Project and user are one directory when somebody works at home.
			if slices.ContainsFunc(spaces, func(other space) bool { return sameDir(other.root, more.root) }) {
				if err := more.root.Close(); err != nil {
					return nil, errors.Join(err, closeAll(spaces))
				}
				continue
			}
			spaces = append(spaces, more)
		}
	}
	if r.roots.System == nil {
		return spaces, nil
	}
	return append(spaces, space{kind: kind, name: item.System, fsys: r.roots.System}), nil
}

// openKind opens <dir>/.ai/<kind folder>; nil when there is none. Paths below .ai
// may not leave it.
func openKind(dir string, of item.Space, kind item.Kind) (*os.Root, error) {
	return openBelowAI(dir, of, kind.Dir(), func(ai *os.Root) error { return holdsItems(ai, dir, kind) })
}

// openBelowAI opens a folder below <dir>/.ai that passes a check; nil when there is none.
func openBelowAI(dir string, of item.Space, folder string, check func(ai *os.Root) error) (*os.Root, error) {
	if dir == "" {
		return nil, nil
	}
	ai, err := OpenAI(dir, of)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = ai.Close() }() // the folder in it stays open
	root, err := OpenFolder(ai, folder)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := check(ai); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// holdsItems refuses a folder of items that is a link to settings, keys or state:
// ids would name their files.
func holdsItems(ai *os.Root, dir string, kind item.Kind) error {
	if info, err := ai.Lstat(kind.Dir()); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return err
	}
	whole, err := filepath.EvalSymlinks(filepath.Join(dir, ".ai"))
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(whole, kind.Dir()))
	if err != nil {
		return err
	}
	below, err := filepath.Rel(whole, real)
	if err != nil {
		return err
	}
	if protect.ByName(append([]string{".ai"}, protect.Split(below)...)) != protect.Writing {
		return fmt.Errorf("the folder .ai/%s is a link to .ai/%s, which holds no items", kind.Dir(), item.Shown(filepath.ToSlash(below)))
	}
	return nil
}

func sameDir(a, b *os.Root) bool {
	infoA, errA := a.Stat(".")
	infoB, errB := b.Stat(".")
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func closeAll(spaces []space) error {
	var errs []error
	for _, s := range spaces {
		if s.root != nil {
			errs = append(errs, s.root.Close())
		}
	}
	return errors.Join(errs...)
}

// entry describes the file of an item.
func (s space) entry(id, ext string, size int64, modTime time.Time) Entry {
	if s.root == nil {
		modTime = time.Time{} // a built-in item has no time of its own
	}
	e := Entry{Kind: s.kind, ID: id, Space: s.name, Path: s.path(s.file(id, ext)), Ext: ext, Size: size, ModTime: modTime}
	if s.place != nil {
		e.Folder = s.place.Folder
	}
	return e
}

// extensions are those that the file of an item can have.
func (s space) extensions(id string) []string {
	switch {
	case s.place == nil:
		return s.kind.Extensions()
	case s.kind == item.Knowledge:
		return []string{path.Ext(id)}
	default:
		return []string{".md"}
	}
}

// file is where an item lies in the folder of the kind.
func (s space) file(id, ext string) string {
	if s.place == nil {
		return id + ext
	}
	return fileIn(*s.place, s.kind, id)
}

// path names a file of the space for people and for [Entry].
func (s space) path(name string) string {
	if s.root == nil {
		return "system:" + s.kind.Dir() + "/" + name
	}
	path := filepath.Join(s.root.Name(), filepath.FromSlash(name))
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// stat reports whether the space has the item.
func (s space) stat(id, ext string) (Entry, bool) {
	info, err := s.lstat(s.file(id, ext))
	if err != nil {
		return Entry{}, false
	}
	return s.entry(id, ext, info.Size(), info.ModTime()), true
}

func (s space) lstat(name string) (fs.FileInfo, error) {
	if s.root == nil {
		return fs.Stat(s.fsys, s.kind.Dir()+"/"+name)
	}
	return s.root.Lstat(name)
}

// read returns the item, or nil when the space does not have it.
func (s space) read(id, ext string) (*Found, error) {
	name := s.file(id, ext)
	// A link to nothing is there, so it is looked at before it is followed.
	if _, err := s.lstat(name); err != nil {
		if isMissing(err) || s.isLinked(name) {
			return nil, nil
		}
		return nil, s.unreadable(id, ext, err)
	}
	content, info, err := s.content(name)
	if err != nil {
		return nil, s.unreadable(id, ext, err)
	}
	found := &Found{
		Entry:   s.entry(id, ext, int64(len(content)), info.ModTime()),
		Content: content,
		Hash:    hashOf(content),
	}
	if s.place != nil {
		err = s.detach(found)
	}
	return found, err
}

func (s space) unreadable(id, ext string, err error) error {
	return &UnreadableError{Kind: s.kind, ID: id, Space: s.name, Path: s.path(s.file(id, ext)), Err: err}
}

// content reads a regular file of at most [parse.MaxBytes].
func (s space) content(name string) (content []byte, info fs.FileInfo, err error) {
	file, err := s.openFile(name)
	if err != nil {
		return nil, nil, err
	}
	return readRegular(file)
}

// Content reads a regular file of at most [parse.MaxBytes] below a root, as the files
// of items are read: a pipe in its place is refused and holds nobody up.
func Content(root *os.Root, name string) ([]byte, error) {
	file, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	content, _, err := readRegular(file)
	return content, err
}

// readRegular reads a file to its end, and closes it.
func readRegular(file fs.File) (content []byte, info fs.FileInfo, err error) {
	defer func() { err = errors.Join(err, file.Close()) }()
	// The open file is asked, not the name: that may mean another file by now.
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(info.Mode())
	}
	content, err = io.ReadAll(io.LimitReader(file, parse.MaxBytes+1))
	if err == nil && len(content) > parse.MaxBytes {
		err = fmt.Errorf("it is larger than %d bytes", parse.MaxBytes)
	}
	return content, info, err
}

func (s space) openFile(name string) (fs.File, error) {
	if s.root == nil {
		return s.fsys.Open(s.kind.Dir() + "/" + name)
	}
	return openRegular(s.root, name)
}

func openRegular(root *os.Root, name string) (fs.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(info.Mode())
	}
	file, _, err := regular.FollowIn(root, name)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func notRegular(mode fs.FileMode) error {
	return fmt.Errorf("it is not a regular file but %s", describe(mode))
}

func describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// isMissing reports that a path does not exist; a file where a folder would
// have to be means the same.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
