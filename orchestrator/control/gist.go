package control

import (
	"os"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// gist is what a look at a thread tells of its thread.json.
type gist struct {
	limits   thread.Limits
	status   thread.State
	warnings []string
}

// lastWords is what a look at a thread tells of its transcript.
type lastWords struct {
	event thread.EventType // newest, checkpoints left out
	text  string           // last the model wrote
}

// maxKept bounds what is kept of files of a kind: some hundred bytes each.
const maxKept = 1000

// glances keep what was read of files of threads, for as long as a file is the
// same one and has the same size and time: thread.json is replaced as a whole, a
// transcript only grows, and to read one again takes as long as the rest of a
// look. Nothing is decided by it; whoever grants something by a thread.json
// reads that.
type glances[T any] struct {
	mu   sync.Mutex
	kept map[string]kept[T] // by path
}

type kept[T any] struct {
	value T
	file  os.FileInfo
}

// of is what is known of the file at path, or what read returns.
func (g *glances[T]) of(path string, read func() (T, error)) (value T, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return value, err
	}
	g.mu.Lock()
	known, ok := g.kept[path]
	g.mu.Unlock()
	if ok && sameFile(known.file, info) {
		return known.value, nil
	}
	if value, err = read(); err != nil {
		return value, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kept == nil || len(g.kept) >= maxKept {
		g.kept = map[string]kept[T]{}
	}
	g.kept[path] = kept[T]{value, info}
	return value, nil
}

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// gistOf reads thread.json, whose signature is checked, unless it is known.
func (c *Controller) gistOf(id thread.ID) (gist, error) {
	dir := c.folder(id)
	return c.gists.of(dir.Meta(), func() (gist, error) {
		meta, err := dir.ReadMeta(c.Home().Seal)
		if err != nil {
			return gist{}, err
		}
		return gist{limits: meta.Limits, status: meta.Status, warnings: meta.Warnings}, nil
	})
}

// lastWordsOf reads the end of a transcript, unless it is known.
func (c *Controller) lastWordsOf(id thread.ID) (lastWords, error) {
	path := c.TranscriptPath(id)
	return c.words.of(path, func() (last lastWords, err error) {
		last.event, last.text, err = transcript.Last(path)
		return last, err
	})
}
