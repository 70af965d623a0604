package threads

import (
	"os"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Described is what a look at a thread tells of its thread.json.
type Described struct {
	Limits   thread.Limits
	Status   thread.State
	Warnings []string
}

// LastWords is what a look at a thread tells of its transcript.
type LastWords struct {
	Event thread.EventType // newest, checkpoints left out
	Text  string           // last the model wrote
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
	kept map[string]kept[T] // by path
}

type kept[T any] struct {
	value T
	file  os.FileInfo
}

// of is what is known of the file at path, or what read returns.
func (f *fileCache[T]) of(path string, read func() (T, error)) (value T, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return value, err
	}
	f.mu.Lock()
	known, ok := f.kept[path]
	f.mu.Unlock()
	if ok && sameFile(known.file, info) {
		return known.value, nil
	}
	if value, err = read(); err != nil {
		return value, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil || len(f.kept) >= maxKept {
		f.kept = map[string]kept[T]{}
	}
	f.kept[path] = kept[T]{value, info}
	return value, nil
}

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Described reads thread.json, whose signature is checked, unless it is known.
func (t *Threads) Described(id thread.ID) (Described, error) {
	dir := t.Folder(id)
	return t.described.of(dir.Meta(), func() (Described, error) {
		meta, err := dir.ReadMeta(t.Home().Seal)
		if err != nil {
			return Described{}, err
		}
		return Described{Limits: meta.Limits, Status: meta.Status, Warnings: meta.Warnings}, nil
	})
}

// LastWords reads the end of a transcript, unless it is known.
func (t *Threads) LastWords(id thread.ID) (LastWords, error) {
	path := t.Transcript(id)
	return t.lastWords.of(path, func() (last LastWords, err error) {
		last.Event, last.Text, err = transcript.Last(path)
		return last, err
	})
}
