package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// followChunk is how much of a transcript is read at once.
const followChunk = 256 << 10

// backstop is how often a followed file is looked at although no event came:
// some file systems send none.
const backstop = 500 * time.Millisecond

// follow hands every event of a transcript to see, from the beginning, as they
// are written. When over is closed it reads what is left and returns. The folder
// of the transcript exists.
func follow(ctx context.Context, path string, over <-chan struct{}, see func(thread.Event) error) error {
	var written <-chan fsnotify.Event
	// Systems that have no watch left to give leave the backstop.
	if watcher, err := fsnotify.NewWatcher(); err == nil {
		defer func() { _ = watcher.Close() }()
		if watcher.Add(filepath.Dir(path)) == nil {
			written = watcher.Events
		}
	}
	tick := time.NewTicker(backstop)
	defer tick.Stop()
	cursor, last := "", false
	for {
		var err error
		if cursor, err = drain(path, cursor, see); err != nil || last {
			return err
		}
		select {
		case <-over:
			last = true
		case <-written:
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drain reads what is there after cursor.
func drain(path, cursor string, see func(thread.Event) error) (string, error) {
	for {
		page, err := transcript.Tail(path, transcript.TailOptions{Cursor: cursor, MaxBytes: followChunk})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, transcript.ErrBadCursor) {
			return cursor, nil // not there yet, or somebody has deleted it
		}
		if err != nil {
			return cursor, err
		}
		for line := range strings.Lines(page.Content) {
			var e thread.Event
			if json.Unmarshal([]byte(line), &e) != nil {
				continue // a damaged line; verifying the transcript is where it is named
			}
			if err := see(e); err != nil {
				return cursor, err
			}
		}
		if page.AtEnd || page.Next == cursor {
			return page.Next, nil
		}
		cursor = page.Next
	}
}
