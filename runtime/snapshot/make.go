package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// The crash points of making a snapshot, in order.
const (
	CrashPut      thread.Crashpoint = "snapshot.put"      // one of the contents is kept
	CrashContents thread.Crashpoint = "snapshot.contents" // all are
	CrashManifest thread.Crashpoint = "snapshot.manifest" // so is the manifest
	CrashIndexed  thread.Crashpoint = "snapshot.indexed"  // the next snapshot knows what has not changed
)

// Maker makes snapshots of the items of a project and its user. It is safe for concurrent
// use.
type Maker struct {
	Roots   resolve.Roots
	Store   Blobs
	Seal    func() *place.Seal
	Program func() Program
	// Index is the file in which it is kept what the last snapshot found; it may be nil, or
	// say that there is none: "".
	Index       func() string
	Now         func() time.Time
	Crashpoints thread.Crashpoints

	mu   sync.Mutex
	last *index
}

// Made is a snapshot that was made.
type Made struct {
	Name Hash
	Pins *Pins
}

// changes is how often files are looked at again that change while they are read.
const changes = 5

// errChanged says that a file is another one by now than the look has found.
var errChanged = errors.New("it was changed while the snapshot was made")

// Make makes a snapshot of the items as they are now, and returns its name. Where nothing
// has changed since the last one, it looks at each file and reads none.
//
// The snapshot is kept for [Grace] at least, and half of it where it was made before; and
// longer when a thread names it.
func (m *Maker) Make(ctx context.Context) (Made, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seal := m.Seal()
	if seal == nil {
		return Made{}, place.ErrNoState
	}
	var err error
	for range changes {
		var made Made
		if made, err = m.make(ctx, seal); !errors.Is(err, errChanged) {
			return made, err
		}
		m.last = nil
	}
	return Made{}, err
}

func (m *Maker) make(ctx context.Context, seal *place.Seal) (Made, error) {
	by := m.Program()
	files, err := look(ctx, m.Roots)
	if err != nil {
		return Made{}, err
	}
	before := m.last
	if before == nil {
		before = readIndex(m.indexFile(), seal, by)
	}
	now := m.Now()
	next, found, err := m.hash(ctx, files, before)
	switch {
	case err != nil:
		return Made{}, err
	case found.same && m.isKept(ctx, before.name, now):
		next.name = before.name
		if found.read {
			m.remember(next, seal, by, now)
		}
		m.last = next
		return Made{next.name, next.pins()}, nil
	}
	if err := m.keepContents(ctx, next); err != nil {
		return Made{}, err
	}
	m.Crashpoints.At(CrashContents)
	if next.name, err = keepManifest(ctx, m.Store, seal, next.manifest(by)); err != nil {
		return Made{}, fmt.Errorf("make a snapshot of the items: %w", err)
	}
	m.Crashpoints.At(CrashManifest)
	m.remember(next, seal, by, now)
	m.Crashpoints.At(CrashIndexed)
	return Made{next.name, next.pins()}, nil
}

// remember lets the next snapshot read no file that does not change until then.
func (m *Maker) remember(x *index, seal *place.Seal, by Program, now time.Time) {
	x.forgetFresh(now)
	m.last = x
	if file := m.indexFile(); file != "" {
		_ = x.write(file, seal, by) // else the next process reads the files once more
	}
}

func (m *Maker) indexFile() string {
	if m.Index == nil {
		return ""
	}
	return m.Index()
}

// isKept reports whether a snapshot is kept for long enough that nothing has to be noted.
func (m *Maker) isKept(ctx context.Context, name Hash, now time.Time) bool {
	b, err := m.Store.Stat(ctx, name)
	return err == nil && now.Sub(b.UsedAt) < Grace/2
}

// compared says how files are to those that were found before.
type compared struct {
	same bool // in all that a manifest says
	read bool // some had to be read
}

// hash finds the hashes of files, of those that have not changed in what was found before.
func (m *Maker) hash(ctx context.Context, files []seen, before *index) (next *index, is compared, err error) {
	next = &index{files: make([]indexed, 0, len(files))}
	is.same = before != nil && len(before.files) == len(files)
	known := before.byPath()
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, is, err
		}
		was, there := known(i, f)
		if there && was.seen == f {
			next.files = append(next.files, was)
			continue
		}
		content, f, err := m.read(f)
		if err != nil {
			return nil, is, err
		}
		now := indexed{f, HashOf(content)}
		is.read = true
		is.same = is.same && there && now.hash == was.hash && now.exec == was.exec
		next.files = append(next.files, now)
	}
	return next, is, nil
}

// read reads a file that a look has found, as it is now.
func (m *Maker) read(f seen) (content []byte, now seen, err error) {
	err = m.open(f, func(root *os.Root, name string) error {
		for range changes {
			opened, before, err := regular.FollowIn(root, name)
			if err != nil {
				return err
			}
			content, err = readBounded(opened, MaxFileBytes)
			after, statErr := opened.Stat()
			if err := errors.Join(err, statErr, opened.Close()); err != nil {
				return err
			}
			if now = (seen{f.space, f.path, isExec(after), after.Size(), stateOf(after)}); stateOf(before) == now.state && int64(len(content)) == now.size {
				return nil
			}
		}
		return errChanged
	})
	if err != nil {
		return nil, now, fmt.Errorf("%s of the %s space: %w", item.Shown(f.path), f.space, errors.Join(errChanged, err))
	}
	return content, now, nil
}

// open calls do with the folder that a file was found in, and its name there.
func (m *Maker) open(f seen, do func(root *os.Root, name string) error) error {
	dir := m.Roots.Project
	if f.space == item.User {
		dir = m.Roots.User
	}
	root, name, err := resolve.OpenFolderOf(dir, f.space, f.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only read
	return do(root, name)
}

// keepContents puts the contents that are not kept yet, and notes that the others are used.
func (m *Maker) keepContents(ctx context.Context, x *index) error {
	hashes := make([]Hash, len(x.files))
	for i, f := range x.files {
		hashes[i] = f.hash
	}
	missing, err := m.Store.Use(ctx, hashes)
	if err != nil || len(missing) == 0 {
		return err
	}
	due := make(map[Hash]bool, len(missing))
	for _, h := range missing {
		due[h] = true
	}
	for _, f := range x.files {
		if !due[f.hash] {
			continue
		}
		delete(due, f.hash)
		content, _, err := m.read(f.seen)
		if err == nil && HashOf(content) != f.hash {
			err = fmt.Errorf("%s of the %s space: %w", item.Shown(f.path), f.space, errChanged)
		}
		if err == nil {
			err = m.Store.Put(ctx, f.hash, int64(len(content)), bytes.NewReader(content))
		}
		if err != nil {
			return err
		}
		m.Crashpoints.At(CrashPut)
	}
	return nil
}

// byPath finds what is known of a file. Mostly it has the place that it had before.
func (x *index) byPath() func(place int, f seen) (indexed, bool) {
	var known map[pinned]indexed
	return func(place int, f seen) (indexed, bool) {
		switch {
		case x == nil:
			return indexed{}, false
		case place < len(x.files) && x.files[place].path == f.path && x.files[place].space == f.space:
			return x.files[place], true
		case known == nil:
			known = make(map[pinned]indexed, len(x.files))
			for _, f := range x.files {
				known[pinned{f.space, f.path}] = f
			}
		}
		was, there := known[pinned{f.space, f.path}]
		return was, there
	}
}

func (x *index) manifest(by Program) Manifest {
	m := Manifest{Program: by, Files: make([]File, len(x.files))}
	for i, f := range x.files {
		m.Files[i] = File{Space: f.space, Path: f.path, Exec: f.exec, Size: f.size, Hash: f.hash}
	}
	return m
}

func (x *index) pins() *Pins {
	p := &Pins{name: x.name, files: make(map[pinned]Hash, len(x.files))}
	for _, f := range x.files {
		p.files[pinned{f.space, f.path}] = f.hash
	}
	return p
}

// forgetFresh forgets the state of files that may change without that it shows.
func (x *index) forgetFresh(now time.Time) {
	for i := range x.files {
		if x.files[i].state.fresh(now) {
			x.files[i].state = state{}
		}
	}
}
