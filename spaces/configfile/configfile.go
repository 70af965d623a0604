// Package configfile replaces configuration files that belong to other programs: whole
// or not at all, with a copy of what was there, and not when another program has written
// meanwhile. A file of the user may be a link, as those of people with dotfiles are; one
// of a project is reached through no link, so that a project leads to nothing outside.
package configfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// maxFile is how many bytes of a file are read.
const maxFile = 32 << 20

// Errors about a file. They are wrapped with its path.
var (
	// ErrNotRegular says that a folder or a device has its place.
	ErrNotRegular = errors.New("it is no regular file")
	// ErrLink says that a file of a project, or a folder on the way to it, is a link.
	ErrLink = errors.New("it is a link, and files of a project are written through none")
	// ErrDangling says that the file is a link to nothing.
	ErrDangling = errors.New("it is a link to nothing")
	// ErrTooLarge says that it is larger than a configuration is.
	ErrTooLarge = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	// ErrForeign says that the file belongs to another user, whose it could not stay.
	ErrForeign = errors.New("it belongs to another user")
	// ErrChanged says that another program has written the file since it was read.
	ErrChanged = errors.New("another program has written it meanwhile")
	// ErrBusy says that the program it belongs to is writing it.
	ErrBusy = errors.New("the program it belongs to is writing it")
)

// File is a configuration as it was read. Close it.
type File struct {
	// Path is where it is, behind links.
	Path string
	// Linked is the link that leads to it; empty where none does.
	Linked string
	// Content is what it holds; nil when there is no file.
	Content []byte

	root *os.Root // a folder above it
	name string   // below root
	info fs.FileInfo
	mode fs.FileMode // of a new one
}

// OpenOwn reads a file of the user. It need not be there, and neither need its folder.
func OpenOwn(name string) (*File, error) {
	target, linked, err := behindLinks(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	above := filepath.Dir(target)
	for _, err = os.Stat(above); errors.Is(err, fs.ErrNotExist) && filepath.Dir(above) != above; _, err = os.Stat(above) {
		above = filepath.Dir(above)
	}
	rel, err := filepath.Rel(above, target)
	if err != nil {
		return nil, err
	}
	return open(above, filepath.ToSlash(rel), linked, 0o600)
}

// OpenIn reads a file of a project, by its path below the project with slashes.
func OpenIn(project, name string) (*File, error) {
	return open(project, name, "", 0o644)
}

// behindLinks follows a link in the place of a file.
func behindLinks(name string) (target, linked string, err error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return name, "", nil
	}
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return name, "", err
	}
	target, err = filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrDangling
	}
	return target, name, err
}

func open(above, name, linked string, mode fs.FileMode) (*File, error) {
	root, err := os.OpenRoot(above)
	if err != nil {
		return nil, err
	}
	f := &File{Path: filepath.Join(above, filepath.FromSlash(name)), Linked: linked, root: root, name: name, mode: mode}
	err = f.checkFolders()
	if err == nil {
		f.Content, f.info, err = f.readStill()
	}
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return f, nil
}

// Close lets go of the file.
func (f *File) Close() error { return f.root.Close() }

// Exists reports whether there was a file.
func (f *File) Exists() bool { return f.info != nil }

// checkFolders refuses links in the place of folders on the way.
func (f *File) checkFolders() error {
	for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
		info, err := f.root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s: %w", dir, ErrLink)
		case !info.IsDir():
			return fmt.Errorf("%s: %w", dir, ErrNotRegular)
		}
	}
	return nil
}

// replacedReads is how often a file may be replaced while it is opened. A program that
// writes it again and again holds nobody up for longer.
const replacedReads = 100

// readStill reads the file, again when it was replaced between the look at it and its
// opening: the first read has nothing that a change could be lost against.
func (f *File) readStill() (content []byte, info fs.FileInfo, err error) {
	for range replacedReads {
		if content, info, err = f.read(); !errors.Is(err, ErrChanged) {
			break
		}
	}
	return content, info, err
}

// read reads the file, if there is one. The error is [ErrChanged] when it was replaced
// meanwhile.
func (f *File) read() ([]byte, fs.FileInfo, error) {
	info, err := f.root.Lstat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, ErrLink
	case !info.Mode().IsRegular():
		return nil, nil, ErrNotRegular
	case info.Size() > maxFile:
		return nil, nil, ErrTooLarge
	}
	file, info, err := regular.Seen(f.root, f.name, info)
	if errors.Is(err, regular.ErrReplaced) {
		return nil, nil, ErrChanged
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // only read
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = ErrTooLarge
	}
	if content == nil {
		content = []byte{}
	}
	return content, info, err
}

// unchanged looks whether the file is what was read.
func (f *File) unchanged() error {
	content, info, err := f.read()
	if err != nil {
		return err
	}
	if (info == nil) != (f.info == nil) || info != nil && !os.SameFile(info, f.info) || !bytes.Equal(content, f.Content) {
		return ErrChanged
	}
	return nil
}

// backup is in the name of a copy, before its time.
const backup = ".rye-backup-"

// Overwrite is Replace without a copy, for a file that only this program writes.
func (f *File) Overwrite(content []byte) error {
	_, err := f.replace(content, time.Time{})
	return err
}

// Replace writes content in the place of the file and returns where the copy of what was
// there is; empty when there was nothing. The file keeps its mode and its owner. The
// error is [ErrChanged] when somebody else has written since it was read.
func (f *File) Replace(content []byte, now time.Time) (copied string, err error) {
	return f.replace(content, now)
}

// replace keeps a copy when it has a time for its name.
func (f *File) replace(content []byte, now time.Time) (copied string, err error) {
	mode := f.mode
	if f.info != nil {
		mode = f.info.Mode().Perm()
		if !mayKeepOwner(f.info) {
			return "", fmt.Errorf("%s: %w", f.Path, ErrForeign)
		}
	}
	if err := f.root.MkdirAll(path.Dir(f.name), 0o755); err != nil {
		return "", f.unwritable(err)
	}
	free, err := f.hold()
	if err != nil {
		return "", f.unwritable(err)
	}
	defer free()
	if err := f.unchanged(); err != nil {
		return "", fmt.Errorf("%s: %w", f.Path, err)
	}
	draft := path.Join(path.Dir(f.name), "."+rand.Text())
	defer func() { _ = f.root.Remove(draft) }() // after the rename there is nothing left to remove
	if err := f.write(draft, content, mode); err != nil {
		return "", f.unwritable(err)
	}
	if f.info != nil && !now.IsZero() {
		if copied, err = f.keep(now, mode); err != nil {
			return "", f.unwritable(err)
		}
	}
	if err := f.unchanged(); err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", f.Path, err), f.forget(copied))
	}
	if err := f.root.Rename(draft, f.name); err != nil {
		return "", errors.Join(err, f.forget(copied))
	}
	return f.shown(copied), f.syncFolder()
}

// hold keeps other processes of this program from writing in the folder meanwhile, which
// ends with free. Between a look at the file and its replacement others could come.
func (f *File) hold() (free func(), err error) {
	folder, err := f.root.Open(path.Dir(f.name))
	if err != nil {
		return nil, err
	}
	if err := lockFile(folder); err != nil {
		_ = folder.Close()
		return nil, err
	}
	return func() { _ = folder.Close() }, nil // which lets go of the lock
}

// Remove takes the file away, when it is still what was read, and of a project the
// folders that hold nothing else. The copies stay.
func (f *File) Remove() error {
	free, err := f.hold()
	if err != nil {
		return err
	}
	defer free()
	if err := f.unchanged(); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if err := errors.Join(f.root.Remove(f.name), f.syncFolder()); err != nil {
		return err
	}
	for dir := path.Dir(f.name); dir != "." && f.root.Remove(dir) == nil; dir = path.Dir(dir) { // until one is not empty
	}
	return nil
}

// unwritable says which file it is about: the error names a draft or a folder.
func (f *File) unwritable(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("%s cannot be written: %w", f.Path, err)
}

// keep copies what is there under a name that no copy has yet.
func (f *File) keep(now time.Time, mode fs.FileMode) (string, error) {
	stamp := f.name + backup + now.UTC().Format("20060102T150405Z")
	name := stamp
	for i := 2; ; i++ {
		err := f.write(name, f.Content, mode)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
		name = fmt.Sprintf("%s-%d", stamp, i)
	}
}

// forget takes a copy away that nothing came of.
func (f *File) forget(copied string) error {
	if copied == "" {
		return nil
	}
	return f.root.Remove(copied)
}

func (f *File) shown(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(f.Path), path.Base(name))
}

// write makes a new file durable.
func (f *File) write(name string, content []byte, mode fs.FileMode) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if f.info != nil {
		err = errors.Join(err, keepOwner(file, f.info))
	}
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err != nil {
		_ = f.root.Remove(name) // half of it is of no use
	}
	return err
}

func (f *File) syncFolder() error {
	folder, err := f.root.Open(path.Dir(f.name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Backups are the copies that are there, newest first.
func (f *File) Backups() ([][]byte, error) {
	entries, err := fs.ReadDir(f.root.FS(), path.Dir(f.name))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), path.Base(f.name)+backup) && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	var all [][]byte
	for _, name := range names[:min(len(names), maxBackups)] {
		copied := &File{root: f.root, name: path.Join(path.Dir(f.name), name)}
		content, _, err := copied.read()
		if err != nil {
			continue // it is of no use
		}
		all = append(all, content)
	}
	return all, nil
}

// maxBackups is how many copies are looked at.
const maxBackups = 20

// staleLock is after how long a lock of another program is left behind.
const staleLock = 10 * time.Second

// Lock takes the lock that Claude Code takes when it writes the file: a folder with the
// name of the file and .lock. The error is [ErrBusy] when somebody has it.
func (f *File) Lock(now time.Time) (unlock func() error, err error) {
	name := f.name + ".lock"
	if err := f.root.MkdirAll(path.Dir(f.name), 0o755); err != nil {
		return nil, err
	}
	err = f.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		info, statErr := f.root.Lstat(name)
		if statErr == nil && now.Sub(info.ModTime()) < staleLock {
			return nil, fmt.Errorf("%s: %w", f.Path, ErrBusy)
		}
		if err = f.root.Remove(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = f.root.Mkdir(name, 0o755)
		}
	}
	if err != nil {
		return nil, err
	}
	return func() error { return f.root.Remove(name) }, nil
}
