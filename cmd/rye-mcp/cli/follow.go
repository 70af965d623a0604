package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// followChunk is how much of a transcript is read at once.
const followChunk = 256 << 10

// backstop is how often a followed file is looked at although no event came:
// some file systems send none.
const backstop = 500 * time.Millisecond

// followChain is [follow] for a thread and, when its transcript names a successor,
// for that one next, from its beginning.
func followChain(
	ctx context.Context, of func(thread.ID) records.Transcript, id thread.ID, over <-chan struct{}, see func(thread.Event) error,
) error {
	followed := map[thread.ID]bool{}
	for id != "" && !followed[id] {
		followed[id] = true
		var next thread.ID
		err := follow(ctx, of(id), over, func(e thread.Event) error {
			if err := see(e); err != nil {
				return err
			}
			if next = successor(e); next != "" {
				return errContinued
			}
			return nil
		})
		if !errors.Is(err, errContinued) {
			return err
		}
		id = next
	}
	return nil
}

// errContinued ends the following of a thread that another one continues.
var errContinued = errors.New("another thread continues this one")

// successor is the thread that continues this one by an event; empty for others.
func successor(e thread.Event) thread.ID {
	if e.Type != thread.EventThreadHandoff && e.Type != thread.EventThreadResumed {
		return ""
	}
	said, err := transcript.Decode[struct {
		NewThreadID thread.ID `json:"new_thread_id"`
	}](e)
	if err != nil {
		return ""
	}
	id, err := thread.ParseID(string(said.NewThreadID))
	if err != nil {
		return "" // it is asked for by it
	}
	return id
}

// follow hands every event of a transcript to see, from the beginning, as they
// are written. When over is closed it reads what is left and returns.
func follow(ctx context.Context, said records.Transcript, over <-chan struct{}, see func(thread.Event) error) error {
	written, unwatch := said.Watch()
	defer unwatch()
	tick := time.NewTicker(backstop)
	defer tick.Stop()
	cursor, last := "", false
	for {
		var err error
		if cursor, err = drain(said, cursor, see); err != nil || last {
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
func drain(said records.Source, cursor string, see func(thread.Event) error) (string, error) {
	begun := "" // of a line that is longer than a page
	for {
		page, err := transcript.Tail(said, transcript.TailOptions{Cursor: cursor, MaxBytes: followChunk})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, transcript.ErrBadCursor) {
			return cursor, nil // not there yet, or somebody has deleted it
		}
		if err != nil {
			return cursor, err
		}
		content := begun + page.Content
		begun = content[strings.LastIndexByte(content, '\n')+1:]
		if err := seeLines(strings.TrimSuffix(content, begun), see); err != nil {
			return cursor, err
		}
		if page.AtEnd || page.Next == cursor {
			return page.Next, nil
		}
		cursor = page.Next
	}
}

// seeLines hands the events of whole lines to see. Damaged lines are left out; verifying the
// transcript is where they are named.
func seeLines(content string, see func(thread.Event) error) error {
	for line := range strings.Lines(content) {
		var e thread.Event
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		if err := see(e); err != nil {
			return err
		}
	}
	return nil
}
