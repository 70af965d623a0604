package threads

import (
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Described is what a look at a thread tells of its thread.json.
type Described struct {
	Limits   thread.Limits
	Status   thread.State
	Warnings []string
	Snapshot string // of the items that it works by; empty: none
	// Workspace is the one that it has for itself; nil: it has none.
	Workspace *thread.Workspace
}

// maxKept bounds what is kept of files of a kind: some hundred bytes each.
const maxKept = 1000

// A fileCache keeps what was read of files of threads, for as long as a file is the
// same one and has the same size and time: thread.json is replaced as a whole, a
// transcript only grows, and to read one again takes as long as the rest of a
// look. Nothing is decided by it: rights and limits are granted by [Threads.OwnMeta],
// which reads the file.
type fileCache[T any] struct {
	mu   sync.Mutex
	kept map[thread.ID]kept[T]
}

type kept[T any] struct {
	value T
	stamp records.Stamp
}

// of is what is known of a thread's file with that stamp, or what read returns.
func (f *fileCache[T]) of(id thread.ID, stamped func() (records.Stamp, error), read func() (T, error)) (value T, err error) {
	stamp, err := stamped()
	if err != nil {
		return value, err
	}
	f.mu.Lock()
	known, ok := f.kept[id]
	f.mu.Unlock()
	if ok && known.stamp.Same(stamp) {
		return known.value, nil
	}
	if value, err = read(); err != nil {
		return value, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil || len(f.kept) >= maxKept {
		f.kept = map[thread.ID]kept[T]{}
	}
	f.kept[id] = kept[T]{value, stamp}
	return value, nil
}

// Described reads thread.json, whose signature is checked, unless it is known.
func (t *Threads) Described(id thread.ID) (Described, error) {
	document := t.Records.Of(id).Meta()
	return t.described.of(id, document.Stamp, func() (Described, error) {
		meta, err := document.Read()
		if err != nil {
			return Described{}, err
		}
		d := Described{Limits: meta.Limits, Status: meta.Status, Warnings: meta.Warnings, Snapshot: meta.Snapshot}
		if meta.OwnWorkspace() {
			d.Workspace = meta.Workspace
		}
		return d, nil
	})
}

// LastWords reads the end of a transcript, unless it is known.
func (t *Threads) LastWords(id thread.ID) (transcript.Newest, error) {
	said := t.Transcript(id)
	return t.lastWords.of(id, said.Stamp, func() (transcript.Newest, error) { return transcript.Last(said) })
}
