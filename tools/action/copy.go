package action

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// copied is what came of a destination; empty without one.
type copied struct {
	path, replaced, next string
}

// writingFiles is the capability that lets a thread put an item into its project.
const writingFiles = "rye.execute.tool.rye.file-system.write"

// copyItem copies an item into the space that a request names, byte by byte: a
// signature is for kind and id, and so goes with it.
func (a *Actions) copyItem(c Caller, found *resolve.Found, r FetchRequest) (copied, error) {
	switch {
	case r.Destination == "" && r.Overwrite:
		return copied{}, tool.Faultf(tool.CodeBadArguments, "overwrite goes with destination")
	case r.Destination == "":
		return copied{}, nil
	}
	space := item.Space(r.Destination)
	if err := a.mayCopy(c, found, space); err != nil {
		return copied{}, err
	}
	d, err := openDestination(a.dirOf(space), found.Kind)
	if err != nil {
		return copied{}, err
	}
	defer func() { _ = d.root.Close() }() // what was written is synced by then
	if err := d.makeFolder(path.Dir(found.ID)); err != nil {
		return copied{}, err
	}
	if err := d.checkFree(found, r.Overwrite); err != nil {
		return copied{}, err
	}
	name, keep := found.ID+found.Ext, ""
	if r.Overwrite {
		keep = name + ".replaced-" + a.Now().UTC().Format("20060102T150405.000000000")
	}
	done := copied{path: filepath.Join(d.dir, filepath.FromSlash(name))}
	replaced, err := d.write(name, keep, found.Content)
	if err != nil {
		return copied{}, err
	}
	if replaced {
		done.replaced = filepath.Join(d.dir, filepath.FromSlash(keep))
	}
	done.next = a.afterCopy(found, space, done.path)
	return done, nil
}

// afterCopy says what is missing until a copy can be executed. That of an item which
// nobody vouches for is not to be signed by whoever copied it.
func (a *Actions) afterCopy(found *resolve.Found, space item.Space, path string) string {
	source := trust.SubjectOf(found)
	there := source
	there.Space, there.Path = space, path
	if v, err := a.Trust.Verify(there); err == nil && v.Status.Good() {
		return ""
	}
	if v, err := a.Trust.Verify(source); err != nil || !v.Status.Good() {
		return "The copy is not executed, as the item that was copied is not: a person has to read it first."
	}
	return fmt.Sprintf("The copy is not executed before it is signed: rye_sign(item_type=%q, item_id=%q, source=%q).", found.Kind, found.ID, space)
}

// mayCopy refuses what a caller may not write. A thread stays in its project, and
// needs what writing the file by itself would need.
func (a *Actions) mayCopy(c Caller, found *resolve.Found, space item.Space) error {
	switch {
	case found.Space == space:
		return tool.Faultf(tool.CodeBadArguments, "%s %q comes from the %s space already", found.Kind, found.ID, space).
			WithHint("Give source to copy the item of another space.")
	case a.dirOf(space) == "":
		return tool.Faultf(tool.CodeUnsupported, "there is no %s space", space)
	case space == item.User && c.InThread:
		return tool.Faultf(tool.CodeUnsupported, "a thread does not write the user space").WithHint("Copy it into the project.")
	}
	return permit(c, writingFiles)
}

// destination is the folder of a kind in a space. No link leads the writing out
// of it: those that lead out of the root are not followed by [os.Root], and others
// are refused.
type destination struct {
	root *os.Root
	dir  string // its path
}

func openDestination(dir string, kind item.Kind) (destination, error) {
	space, err := os.OpenRoot(dir)
	if err != nil {
		return destination{}, err
	}
	defer func() { _ = space.Close() }() // the folder in it stays open
	folder := path.Join(".ai", kind.Dir())
	if err := makeFolders(space, folder); err != nil {
		return destination{}, err
	}
	root, err := resolve.OpenFolder(space, folder)
	return destination{root: root, dir: filepath.Join(dir, filepath.FromSlash(folder))}, err
}

func (d destination) makeFolder(name string) error { return makeFolders(d.root, name) }

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
			return tool.Faultf(tool.CodeUnsupported, "%s is no folder but %s, and items are not copied through links",
				filepath.Join(root.Name(), filepath.FromSlash(made)), info.Mode().Type())
		}
	}
	return nil
}

// checkFree refuses to put an item beside one of its id, whatever its extension,
// or in the place of one without being told to.
func (d destination) checkFree(found *resolve.Found, overwrite bool) error {
	for _, ext := range found.Kind.Extensions() {
		name := found.ID + ext
		info, err := d.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		where := filepath.Join(d.dir, filepath.FromSlash(name))
		switch {
		case !info.Mode().IsRegular():
			return tool.Faultf(tool.CodeUnsupported, "%s is not a regular file, and is not replaced", where).With("path", where)
		case ext != found.Ext:
			return tool.Faultf(tool.CodeUnsupported, "%s has the same id in another language", where).With("path", where).
				WithHint("One of the two would hide the other. Remove or rename that file first.")
		case !overwrite:
			return tool.Faultf(tool.CodeUnsupported, "%s exists", where).With("path", where).
				WithHint("overwrite: true replaces it and keeps it beside the copy.")
		}
	}
	return nil
}

// write makes content durable before it gets its name. A file that has the name is
// kept as keep, which is no item's name; without keep it stays.
func (d destination) write(name, keep string, content []byte) (replaced bool, err error) {
	draft := path.Join(path.Dir(name), "."+rand.Text())
	file, err := d.root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	// After a rename there is nothing left to remove.
	defer func() { _ = d.root.Remove(draft) }()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return false, err
	}
	err = d.root.Link(draft, name) // refuses to replace
	if errors.Is(err, fs.ErrExist) && keep != "" {
		if err = d.root.Link(name, keep); err == nil {
			replaced, err = true, d.root.Rename(draft, name)
		}
	}
	if err != nil {
		return replaced, err
	}
	return replaced, d.syncFolder(path.Dir(name))
}

func (d destination) syncFolder(name string) error {
	folder, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
