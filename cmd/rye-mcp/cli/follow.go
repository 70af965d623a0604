package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
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
// are written. When over is closed it reads what is left and returns.
func follow(ctx context.Context, path string, over <-chan struct{}, see func(thread.Event) error) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Close() }()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	tick := time.NewTicker(backstop)
	defer tick.Stop()
	cursor, last := "", false
	for {
		if cursor, err = drain(path, cursor, see); err != nil || last {
			return err
		}
		select {
		case <-over:
			last = true
		case <-watcher.Events:
		case err := <-watcher.Errors:
			return err
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
		if errors.Is(err, fs.ErrNotExist) {
			return cursor, nil
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
