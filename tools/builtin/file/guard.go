package file

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// guard keeps threads that share a working tree from writing over what others have
// changed. The process of a thread remembers what it has read, so a successor and a
// resumed thread begin with nothing. The last writer stands below the project's state,
// in a fixed number of small files: a record that is pushed out, or that a crash loses,
// costs the name of a writer and no more, since contents are compared. Writes of
// commands are seen as changes by somebody.
type guard struct {
	// state is the folder of the project's state; empty, or not there: no thread has run,
	// and nobody shares the tree.
	state func() string
	now   func() time.Time
	began time.Time // this process

	mu    sync.Mutex
	known map[fileKey]string // hashes of contents, as threads have read or written them
}

// fileKey is a file as a thread knows it.
type fileKey struct {
	thread thread.ID
	path   string
}

// maxKnown bounds what is remembered. Beyond, some file counts as never read.
const maxKnown = 4096

func newGuard(state func() string, now func() time.Time) *guard {
	return &guard{state: state, now: now, began: now(), known: map[fileKey]string{}}
}

// missed records that a thread has found no file.
func (g *guard) missed(env tool.Env, path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, fileKey{env.ThreadID, path})
}

// saw records the content of a file as a thread knows it from now on.
func (g *guard) saw(env tool.Env, path string, data []byte) {
	if env.ThreadID == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := fileKey{env.ThreadID, path}
	if _, has := g.known[key]; !has && len(g.known) >= maxKnown {
		for other := range g.known {
			delete(g.known, other)
			break
		}
	}
	g.known[key] = contentHash(data)
}

func (g *guard) knows(env tool.Env, path string) (hash string, read bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hash, read = g.known[fileKey{env.ThreadID, path}]
	return hash, read
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// turn is the right to change some files, against all processes of the project. Nil is
// that of a project that has no state.
type turn struct {
	guard *guard
	dir   string
	locks map[string]*process.Lock // by shard
}

// Bounds of the records.
const (
	shards       = 64
	maxRecords   = 64 // of a shard
	writtenName  = ".written"
	turnPatience = 20 * time.Second
	turnPoll     = 2 * time.Millisecond
)

// take takes the turn for files, in an order that is the same for all, so that none
// waits for another in a circle. It waits until others have written, which takes
// milliseconds, or until ctx ends.
func (g *guard) take(ctx context.Context, paths ...string) (_ *turn, err error) {
	dir, err := g.folder()
	if dir == "" || err != nil {
		return nil, err
	}
	t := &turn{guard: g, dir: dir, locks: map[string]*process.Lock{}}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = shardOf(path)
	}
	slices.Sort(names)
	ctx, stop := context.WithTimeoutCause(ctx, turnPatience, tool.Faultf(tool.CodeConflict, "others have been writing to the same files for %v", turnPatience).
		WithHint("Call again; nothing was written."))
	defer stop()
	for _, name := range slices.Compact(names) {
		if t.locks[name], err = process.Await(ctx, filepath.Join(dir, name+".turn"), turnPoll); err != nil {
			delete(t.locks, name)
			t.release()
			return nil, err
		}
	}
	return t, nil
}

// folder is that of the records. It is made with the first, in state that is there.
func (g *guard) folder() (string, error) {
	state := g.state()
	if state == "" {
		return "", nil
	}
	dir := filepath.Join(state, writtenName)
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil && !errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("make the records of who wrote what: %w", err)
	}
	return dir, nil
}

// release lets others write.
func (t *turn) release() {
	if t == nil {
		return
	}
	for _, lock := range t.locks {
		_ = lock.Release() // it ends with the process at the latest
	}
}

// written is the record of who wrote a file last.
type written struct {
	Path   string    `json:"path"` // its hash
	Thread thread.ID `json:"thread,omitempty"`
	Hash   string    `json:"hash"` // of the content
	At     int64     `json:"at"`   // milliseconds
}

// shardOf is the name of the shard of a file.
func shardOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return fmt.Sprintf("%02x", binary.BigEndian.Uint16(sum[:])%shards)
}

func pathHash(path string) string { return contentHash([]byte(path))[:32] }

// maxShard is far above what maxRecords take, in bytes.
const maxShard = 64 << 20

// records are those of the shard of a file, the last written last. A record that
// cannot be read says nothing.
func (t *turn) records(path string) (list []written) {
	data, err := regular.ReadFollowed(filepath.Join(t.dir, shardOf(path)+".json"), maxShard)
	if err != nil || json.Unmarshal(data, &list) != nil || len(list) > maxRecords {
		return nil
	}
	return list
}

// last is who wrote a file last.
func (t *turn) last(path string) (w written, known bool) {
	if t == nil {
		return w, false
	}
	hash := pathHash(path)
	for _, w := range t.records(path) {
		if w.Path == hash {
			return w, true
		}
	}
	return w, false
}

// wrote records who has written a file. It is no reason to fail that it cannot be
// recorded: the file is written.
func (t *turn) wrote(env tool.Env, path string, data []byte) {
	if t == nil {
		return
	}
	now := written{Path: pathHash(path), Thread: env.ThreadID, Hash: contentHash(data), At: t.guard.now().UnixMilli()}
	list := slices.DeleteFunc(t.records(path), func(w written) bool { return w.Path == now.Path })
	if list = append(list, now); len(list) > maxRecords {
		list = list[len(list)-maxRecords:]
	}
	text, err := json.Marshal(list)
	if err != nil {
		return
	}
	to := filepath.Join(t.dir, shardOf(path)+".json")
	if os.WriteFile(to+".new", text, 0o600) == nil { // not waited to disk: after a loss of power nobody shares the tree
		_ = os.Rename(to+".new", to)
	}
}

// mayReplace refuses to let the thread of a call replace a file that has another content
// than the thread knows, or that it never read and another thread wrote since this one
// began. Exists is false where there is no file.
func (p *project) mayReplace(pl *place, data []byte, exists bool) error {
	if p.env.ThreadID == "" {
		return nil
	}
	path, shown := p.key(pl), filepath.ToSlash(pl.asked)
	before, read := p.guard.knows(p.env, path)
	last, recorded := p.turn.last(path)
	others := recorded && last.Thread != p.env.ThreadID && last.Thread != ""
	switch {
	case read && !exists:
		return changed(shown, "is gone since this thread read it", "").WithHint("Read it again; when it is not there, it can be written.")
	case read && contentHash(data) != before:
		if !others || last.Hash != contentHash(data) {
			last.Thread = ""
		}
		return changed(shown, "has changed since this thread read it", last.Thread)
	case !read && exists && others && last.At >= p.guard.began.UnixMilli():
		return changed(shown, "was written since this thread began, which has not read it", last.Thread)
	}
	return nil
}

// mayEdit refuses to let the thread of a call edit lines of a file that it has read and
// another thread has written since. Changes of a command are left to the ids of the
// lines.
func (p *project) mayEdit(pl *place, data []byte) error {
	path := p.key(pl)
	before, read := p.guard.knows(p.env, path)
	now := contentHash(data)
	if last, recorded := p.turn.last(path); read && recorded && now != before && last.Hash == now && last.Thread != p.env.ThreadID && last.Thread != "" {
		return changed(filepath.ToSlash(pl.asked), "has changed since this thread read it", last.Thread)
	}
	return nil
}

// wrote records a file that was written. The thread knows all of it now if it knew all
// of what was there before, which whole says where nothing was.
func (p *project) wrote(pl *place, before, after []byte, whole bool) {
	path := p.key(pl)
	p.turn.wrote(p.env, path, after)
	if known, read := p.guard.knows(p.env, path); whole || read && known == contentHash(before) {
		p.guard.saw(p.env, path, after)
	}
}

func changed(shown, how string, by thread.ID) *tool.Fault {
	who := "by a command, or by somebody who is no thread"
	if by != "" {
		who = "by thread " + string(by)
	}
	f := tool.Faultf(tool.CodeConflict, "%q %s (%s); nothing was written", shown, how, who).With("path", shown)
	if by != "" {
		f = f.With("changed_by", by)
	}
	return f.WithHint("Read it again with rye/file-system/read, and change what it holds now.")
}

// key names the file of a place: its path without links, and where the file system takes
// upper and lower case for the same, in lower case.
func (p *project) key(pl *place) string {
	path := filepath.Join(p.real, pl.rel())
	if pl.info == nil || pl.name == "" {
		return path
	}
	other := strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, pl.name)
	if other == pl.name {
		return path
	}
	if twin, err := pl.in().Lstat(other); err == nil && os.SameFile(twin, pl.info) {
		return strings.ToLower(path)
	}
	return path
}
