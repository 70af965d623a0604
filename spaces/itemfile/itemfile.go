// Package itemfile writes the files of items: whole or not at all, through no link,
// and over nothing unless told to, which is kept then.
package itemfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// TakenError says that an item is not written because of what is there.
type TakenError struct {
	Path string
	Why  Why
}

// Why is what stands in the way.
type Why int

// Errors about writing an item.
const (
	Exists  Why = iota // a file of its name, which may be replaced
	SameID             // an item of the same id in another language: one would hide the other
	NoFile             // something else than a regular file
	NoItems            // a link or a file in the place of a folder
)

func (e *TakenError) Error() string {
	switch e.Why {
	case SameID:
		return e.Path + " has the same id in another language"
	case NoFile:
		return e.Path + " is not a regular file, and is not replaced"
	case NoItems:
		return e.Path + " is no folder, and items are not written through links"
	default:
		return e.Path + " exists"
	}
}

// Folder is the folder of a kind in a space. No link leads the writing out of it:
// those that lead out of the root are not followed by [os.Root], and others are
// refused. Close it.
type Folder struct {
	kind item.Kind
	root *os.Root
	dir  string // its path
}

// Open opens the folder of a kind below a directory that holds a space, and makes it
// when there is none.
func Open(spaceDir string, kind item.Kind) (*Folder, error) {
	space, err := os.OpenRoot(spaceDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = space.Close() }() // the folder in it stays open
	folder := path.Join(".ai", kind.Dir())
	if err := makeFolders(space, folder); err != nil {
		return nil, err
	}
	root, err := resolve.OpenFolder(space, folder)
	if err != nil {
		return nil, err
	}
	return &Folder{kind: kind, root: root, dir: filepath.Join(spaceDir, filepath.FromSlash(folder))}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Path is where an item of the folder is.
func (f *Folder) Path(id, ext string) string {
	return filepath.Join(f.dir, filepath.FromSlash(id+ext))
}

// Check says with a [*TakenError] why an item would not be written.
func (f *Folder) Check(id, ext string, replace bool) error {
	if err := item.CheckID(id); err != nil {
		return err
	}
	if !slices.Contains(f.kind.Extensions(), ext) {
		return fmt.Errorf("%q is no extension of a %s; valid are %s", item.Shown(ext), f.kind, strings.Join(f.kind.Extensions(), " "))
	}
	for _, other := range f.kind.Extensions() {
		info, err := f.root.Lstat(id + other)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return &TakenError{f.Path(id, other), NoFile}
		case other != ext:
			return &TakenError{f.Path(id, other), SameID}
		case !replace:
			return &TakenError{f.Path(id, other), Exists}
		}
	}
	return nil
}

// Written is a file that was written.
type Written struct {
	Path     string
	Replaced string // where what stood there is kept; empty when nothing did
}

// Put writes an item and makes it durable. Anything in its place is an error, unless
// replacing has a time: then it is kept under a name with that time, which is no item's.
func (f *Folder) Put(id, ext string, content []byte, replacing time.Time) (Written, error) {
	if err := item.CheckID(id); err != nil {
		return Written{}, err
	}
	if err := makeFolders(f.root, path.Dir(id)); err != nil {
		return Written{}, err
	}
	replace := !replacing.IsZero()
	if err := f.Check(id, ext, replace); err != nil {
		return Written{}, err
	}
	name, keep := id+ext, ""
	if replace {
		keep = name + ".replaced-" + replacing.UTC().Format("20060102T150405.000000000")
	}
	replaced, err := f.write(name, keep, content)
	if errors.Is(err, fs.ErrExist) && !replaced {
		return Written{}, &TakenError{f.Path(id, ext), Exists} // it has come since it was checked
	}
	if err != nil {
		return Written{}, err
	}
	w := Written{Path: f.Path(id, ext)}
	if replaced {
		w.Replaced = filepath.Join(f.dir, filepath.FromSlash(keep))
	}
	return w, nil
}

// PutSignature writes the detached signature of an item, over an earlier one.
func PutSignature(spaceDir string, kind item.Kind, id string, content []byte) error {
	if err := item.CheckID(id); err != nil {
		return err
	}
	space, err := os.OpenRoot(spaceDir)
	if err != nil {
		return err
	}
	defer func() { _ = space.Close() }() // the file is synced by then
	name := path.Join(".ai", resolve.SignatureFolder(kind), id) + resolve.Extension
	if err := makeFolders(space, path.Dir(name)); err != nil {
		return err
	}
	f := &Folder{kind: kind, root: space, dir: spaceDir}
	draft, err := f.draft(path.Dir(name), content)
	if err != nil {
		return err
	}
	defer func() { _ = space.Remove(draft) }() // after a rename there is nothing left to remove
	return errors.Join(space.Rename(draft, name), f.syncFolder(path.Dir(name)))
}

// makeFolders makes a folder and those above it, and refuses links in their place.
func makeFolders(root *os.Root, name string) error {
	made := ""
	for part := range strings.SplitSeq(name, "/") {
		if made = path.Join(made, part); made == "." || made == "" {
			continue
		}
		if err := root.Mkdir(made, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := root.Lstat(made)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return &TakenError{filepath.Join(root.Name(), filepath.FromSlash(made)), NoItems}
		}
	}
	return nil
}

// write makes content durable before it gets its name. A file that has the name is
// kept as keep, which is no item's name; without keep it stays.
func (f *Folder) write(name, keep string, content []byte) (replaced bool, err error) {
	draft, err := f.draft(path.Dir(name), content)
	if err != nil {
		return false, err
	}
	// After a rename there is nothing left to remove.
	defer func() { _ = f.root.Remove(draft) }()
	err = f.root.Link(draft, name) // refuses to replace
	if errors.Is(err, fs.ErrExist) && keep != "" {
		if err = f.root.Link(name, keep); err == nil {
			replaced, err = true, f.root.Rename(draft, name)
		}
	}
	if err != nil {
		return replaced, err
	}
	return replaced, f.syncFolder(path.Dir(name))
}

// draft writes content durably under a name of no item.
func (f *Folder) draft(folder string, content []byte) (name string, err error) {
	name = path.Join(folder, "."+rand.Text())
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = f.root.Remove(name)
		return "", err
	}
	return name, nil
}

func (f *Folder) syncFolder(name string) error {
	folder, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
