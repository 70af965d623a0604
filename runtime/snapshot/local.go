package snapshot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Files and folders of snapshots are for their owner alone.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Folders of a [Local].
const (
	blobsDir = "blobs" // below it one for each first two digits
	namesDir = "names"
)

// Local is the [Store] in a folder of this machine. A content is a file with the name of
// its hash, written whole before it has that name, and the time of its change is when it
// was last used. No link is followed out of the folder.
type Local struct {
	// Dir is the folder, which is made with the first content; empty: there is no state.
	Dir func() string
	Now func() time.Time
}

// open opens the folder; make says to make it where there is none.
func (l Local) open(create bool) (*os.Root, error) {
	dir := l.Dir()
	if dir == "" {
		return nil, fmt.Errorf("snapshots: %w", place.ErrNoState)
	}
	above, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = above.Close() }() // the folder in it stays open
	name := filepath.Base(dir)
	if create {
		if err := above.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	if info, err := above.Lstat(name); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", dir)
	}
	return resolve.OpenFolder(above, name)
}

// within calls do with the folder. Without one it calls nothing.
func (l Local) within(do func(*os.Root) error) error {
	root, err := l.open(false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, place.ErrNoState) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // all writes are synced by then
	return do(root)
}

func blobFile(h Hash) string { return path.Join(blobsDir, string(h[:2]), string(h)) }

// Use implements [Blobs].
func (l Local) Use(ctx context.Context, hashes []Hash) (missing []Hash, err error) {
	for _, h := range hashes {
		if err := check(ctx, h); err != nil {
			return nil, err
		}
	}
	used := map[Hash]bool{}
	err = l.within(func(root *os.Root) error {
		now := l.Now()
		for _, h := range hashes {
			// Chtimes follows a link; a blob is none.
			if info, err := root.Lstat(blobFile(h)); err != nil || !info.Mode().IsRegular() {
				continue
			}
			switch err := root.Chtimes(blobFile(h), now, now); {
			case err == nil:
				used[h] = true
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		return nil
	})
	for _, h := range hashes {
		if !used[h] {
			missing = append(missing, h)
		}
	}
	return missing, err
}

func check(ctx context.Context, h Hash) error {
	if _, err := ParseHash(string(h)); err != nil {
		return err
	}
	return ctx.Err()
}

// Put implements [Blobs].
func (l Local) Put(ctx context.Context, hash Hash, size int64, content io.Reader) error {
	if err := check(ctx, hash); err != nil {
		return err
	}
	root, err := l.open(true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the file is synced by then
	return l.write(root, blobFile(hash), Verified(content, hash, size))
}

// write puts a file in its place, whole, and syncs it.
func (l Local) write(root *os.Root, name string, content io.Reader) (err error) {
	if err := root.MkdirAll(path.Dir(name), dirMode); err != nil {
		return err
	}
	draft := path.Join(path.Dir(name), draftPrefix+rand.Text())
	f, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(draft) // else a sweep does it
		}
	}()
	_, err = io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	now := l.Now()
	if err = root.Chtimes(draft, now, now); err != nil {
		return err
	}
	if err = root.Rename(draft, name); err != nil {
		return err
	}
	return syncFolder(root, path.Dir(name))
}

// draftPrefix begins the names of files that are being written.
const draftPrefix = ".draft-"

// syncFolder makes the names in a folder survive a crash of the machine.
func syncFolder(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	err = dir.Sync()
	return errors.Join(err, dir.Close())
}

// Get implements [Blobs].
func (l Local) Get(ctx context.Context, hash Hash) (io.ReadCloser, error) {
	if err := check(ctx, hash); err != nil {
		return nil, err
	}
	var opened *os.File
	err := l.within(func(root *os.Root) (err error) {
		opened, _, err = regular.OpenIn(root, blobFile(hash))
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && opened == nil:
		return nil, &MissingError{hash}
	case errors.Is(err, regular.ErrNot):
		return nil, &AlteredError{hash, "it is no regular file"}
	case err != nil:
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{Verified(opened, hash, -1), opened}, nil
}

// Stat implements [Blobs].
func (l Local) Stat(ctx context.Context, hash Hash) (b Blob, err error) {
	if err := check(ctx, hash); err != nil {
		return b, err
	}
	err = l.within(func(root *os.Root) error {
		info, err := root.Lstat(blobFile(hash))
		if err == nil && info.Mode().IsRegular() {
			b = Blob{Hash: hash, Size: info.Size(), UsedAt: info.ModTime()}
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && b.Hash == "" {
		err = &MissingError{hash}
	}
	return b, err
}

// All implements [Blobs].
func (l Local) All(ctx context.Context) iter.Seq2[Blob, error] {
	return func(yield func(Blob, error) bool) {
		more := true
		err := l.within(func(root *os.Root) error {
			folders, err := entriesOf(root, blobsDir)
			for _, folder := range folders {
				if err != nil || !more {
					break
				}
				more, err = l.allBelow(ctx, root, path.Join(blobsDir, folder.Name()), yield)
			}
			return err
		})
		if err != nil && more {
			yield(Blob{}, err)
		}
	}
}

// allBelow lists the contents of one folder, and removes drafts that a crash has left.
func (l Local) allBelow(ctx context.Context, root *os.Root, folder string, yield func(Blob, error) bool) (more bool, err error) {
	files, err := entriesOf(root, folder)
	if err != nil {
		return true, err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		info, err := root.Lstat(path.Join(folder, f.Name()))
		if err != nil || !info.Mode().IsRegular() {
			continue // gone, or nothing of ours
		}
		h := Hash(f.Name())
		switch {
		case strings.HasPrefix(f.Name(), draftPrefix) && l.Now().Sub(info.ModTime()) > Grace:
			_ = root.Remove(path.Join(folder, f.Name())) // the next look tries again
		case h.Valid() && blobFile(h) == path.Join(folder, f.Name()):
			if !yield(Blob{h, info.Size(), info.ModTime()}, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

// entriesOf reads a folder; one that is not there has no entries.
func entriesOf(root *os.Root, name string) ([]fs.DirEntry, error) {
	dir, err := resolve.OpenFolder(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read
	return fs.ReadDir(dir.FS(), ".")
}

// Remove implements [Blobs]. The file is moved aside before its time is looked at: a
// process that wants it from then on does not find it, and puts it again.
func (l Local) Remove(ctx context.Context, hash Hash, since time.Time) (removed bool, err error) {
	if err := check(ctx, hash); err != nil {
		return false, err
	}
	err = l.within(func(root *os.Root) error {
		name := blobFile(hash)
		if info, err := root.Lstat(name); err != nil || !info.ModTime().Before(since) {
			return err
		}
		aside := path.Join(path.Dir(name), draftPrefix+rand.Text())
		if err := root.Rename(name, aside); err != nil {
			return err
		}
		if info, err := root.Lstat(aside); err != nil || !info.ModTime().Before(since) { // used meanwhile
			return errors.Join(err, root.Rename(aside, name))
		}
		removed = true
		return root.Remove(aside)
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return removed, err
}

// Name implements [Names].
func (l Local) Name(ctx context.Context, of thread.ID, snapshot Hash) error {
	if err := check(ctx, snapshot); err != nil {
		return err
	}
	root, err := l.open(true)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the file is synced by then
	return l.write(root, nameFile(of), strings.NewReader(string(snapshot)+" "+string(of)+"\n"))
}

// nameFile is the file that says which snapshot a thread works by. Ids have slashes, and
// may be longer than the name of a file.
func nameFile(of thread.ID) string { return path.Join(namesDir, string(HashOf([]byte(of)))) }

// Forget implements [Names].
func (l Local) Forget(_ context.Context, of thread.ID) error {
	err := l.within(func(root *os.Root) error { return root.Remove(nameFile(of)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// maxName bounds what is read of a file that names a snapshot.
const maxName = 4096

// Named implements [Names]. A file that names none is passed over.
func (l Local) Named(ctx context.Context) iter.Seq2[Reference, error] {
	return func(yield func(Reference, error) bool) {
		more := true
		err := l.within(func(root *os.Root) error {
			files, err := entriesOf(root, namesDir)
			for _, f := range files {
				if err = ctx.Err(); err != nil || !more {
					break
				}
				if ref, ok := readName(root, path.Join(namesDir, f.Name())); ok {
					more = yield(ref, nil)
				}
			}
			return err
		})
		if err != nil && more {
			yield(Reference{}, err)
		}
	}
}

func readName(root *os.Root, name string) (r Reference, ok bool) {
	info, err := root.Lstat(name)
	if err != nil {
		return r, false
	}
	text, err := regular.ReadIn(root, name, maxName)
	if err != nil {
		return r, false
	}
	hash, id, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	r = Reference{thread.ID(id), Hash(hash), info.ModTime()}
	return r, r.Snapshot.Valid() && nameFile(r.Thread) == name
}
