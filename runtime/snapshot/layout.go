package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// The crash points of laying a snapshot out, in order.
const (
	CrashLaidFile thread.Crashpoint = "snapshot.laid_file" // one of its files is in the draft
	CrashLaid     thread.Crashpoint = "snapshot.laid"      // all are
	CrashInPlace  thread.Crashpoint = "snapshot.in_place"  // the draft has its name
)

// Crashpoints lists the crash points of making a snapshot, laying it out and collecting.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashPut, CrashContents, CrashManifest, CrashIndexed, CrashLaidFile, CrashLaid, CrashInPlace, CrashCollected}
}

// Layouts are folders in which snapshots are laid out, each in one with its name.
type Layouts struct {
	Dir         string // made where it is missing; for their owner alone
	Now         func() time.Time
	Crashpoints thread.Crashpoints
}

// RootsOf are the spaces of a snapshot that is laid out in a folder, without the system space.
func RootsOf(folder string) resolve.Roots {
	return resolve.Roots{Project: filepath.Join(folder, string(item.Project)), User: filepath.Join(folder, string(item.User))}
}

// Materialize lays the files of a snapshot out, and returns the folder: project and user are
// folders in it, see [RootsOf]. It has its name when all files are there, with the contents
// that the manifest names. A content that is missing or altered is [ErrUnusable]. Where the
// snapshot is laid out already that costs a look.
//
// Other programs of the user can change a layout: loading a file of it asks [Pins].
func (l Layouts) Materialize(ctx context.Context, from Blobs, name Hash, m *Manifest) (folder string, err error) {
	if !name.Valid() {
		return "", fmt.Errorf("%.80q is no snapshot", name)
	}
	folder = filepath.Join(l.Dir, string(name))
	if err := os.MkdirAll(l.Dir, dirMode); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }() // all writes are synced by then
	switch info, err := root.Lstat(string(name)); {
	case err == nil && info.IsDir():
		now := l.Now()
		return folder, root.Chtimes(string(name), now, now)
	case err == nil:
		return "", fmt.Errorf("%s is no folder", folder)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	draft := draftPrefix + rand.Text()
	err = l.layOut(ctx, root, draft, from, m)
	if err == nil {
		l.Crashpoints.At(CrashLaid)
		err = takePlace(root, draft, string(name))
		l.Crashpoints.At(CrashInPlace)
	}
	if err != nil {
		_ = root.RemoveAll(draft) // else Prune does it
		return "", fmt.Errorf("lay out snapshot %s: %w", name.Short(), err)
	}
	return folder, nil
}

// takePlace gives a draft its name. Another process may have laid out the same.
func takePlace(root *os.Root, draft, name string) error {
	err := root.Rename(draft, name)
	if info, statErr := root.Lstat(name); err != nil && statErr == nil && info.IsDir() {
		return root.RemoveAll(draft)
	}
	return err
}

// layOut writes the files into a new folder. Everything is written below that folder as it
// was opened, so that nothing which is put in its place meanwhile is written to.
func (l Layouts) layOut(ctx context.Context, in *os.Root, draft string, from Blobs, m *Manifest) error {
	if err := m.Check(); err != nil {
		return err
	}
	if err := in.Mkdir(draft, dirMode); err != nil {
		return err
	}
	root, err := resolve.OpenFolder(in, draft)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // each file was closed
	for _, space := range []item.Space{item.Project, item.User} {
		if err := root.Mkdir(string(space), dirMode); err != nil {
			return err
		}
	}
	for _, f := range m.Files {
		if err := layOutFile(ctx, root, from, f); err != nil {
			return fmt.Errorf("%s of the %s space: %w", item.Shown(f.Path), f.Space, err)
		}
		l.Crashpoints.At(CrashLaidFile)
	}
	return nil
}

func layOutFile(ctx context.Context, root *os.Root, from Blobs, f File) (err error) {
	name := path.Join(string(f.Space), f.Path)
	if err := root.MkdirAll(path.Dir(name), dirMode); err != nil {
		return err
	}
	content, err := from.Get(ctx, f.Hash)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	mode := fs.FileMode(fileMode)
	if f.Exec {
		mode = dirMode
	}
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	// The store verifies as well; it may be another machine's.
	_, err = io.Copy(to, Verified(content, f.Hash, f.Size))
	return errors.Join(err, to.Close())
}

// Prune removes what was laid out for snapshots that keep does not name and that nobody has
// asked for since that time, and drafts that a crash has left.
func (l Layouts) Prune(since time.Time, keep func(Hash) bool) (removed int, err error) {
	root, err := os.OpenRoot(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }() // nothing is written
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		name := e.Name()
		ours := strings.HasPrefix(name, draftPrefix) || Hash(name).Valid() && !keep(Hash(name))
		info, statErr := root.Lstat(name)
		if !ours || statErr != nil || !info.ModTime().Before(since) {
			continue
		}
		// It loses its name first: nobody finds half of it.
		aside := draftPrefix + rand.Text()
		if err := errors.Join(root.Rename(name, aside), root.RemoveAll(aside)); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, err
}
