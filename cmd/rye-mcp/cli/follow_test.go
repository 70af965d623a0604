package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	lineOne   = `{"timestamp":"2026-01-02T03:04:05Z","thread_id":"x-1","seq":1,"event_type":"token_delta","payload":{"type":"text","text":"one"}}` + "\n"
	lineTwo   = `{"timestamp":"2026-01-02T03:04:05Z","thread_id":"x-1","seq":2,"event_type":"token_delta","payload":{"type":"text","text":" two"}}` + "\n"
	lineThree = `{"timestamp":"2026-01-02T03:04:05Z","thread_id":"x-1","seq":3,"event_type":"cognition_out","payload":{}}` + "\n"
)

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A transcript is followed from before it exists to its end; a half-written
// line is waited for, a damaged one passed over.
func TestFollow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	seen, over, done := make(chan int64), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- follow(t.Context(), records.File(path), over, func(e thread.Event) error {
			seen <- e.Seq
			return nil
		})
	}()
	want := func(seq int64) {
		t.Helper()
		if got := <-seen; got != seq {
			t.Errorf("event %d, want %d", got, seq)
		}
	}
	appendTo(t, path, lineOne+lineTwo[:20])
	want(1)
	appendTo(t, path, lineTwo[20:]+"{damaged\n")
	want(2)
	appendTo(t, path, lineThree) // may be read before or after over
	close(over)
	want(3)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gone := errors.New("nobody reads")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := follow(ctx, records.File(filepath.Join(dir, "none.jsonl")), nil, nil); !errors.Is(err, gone) {
		t.Errorf("with its context: %v", err)
	}
	path := filepath.Join(dir, "transcript.jsonl")
	appendTo(t, path, lineOne)
	err := follow(t.Context(), records.File(path), nil, func(thread.Event) error { return gone })
	if !errors.Is(err, gone) {
		t.Errorf("with an error: %v", err)
	}
	over := make(chan struct{})
	close(over)
	if err := follow(t.Context(), records.File(filepath.Join(dir, "gone", "x.jsonl")), over, nil); err != nil {
		t.Errorf("a thread that wrote nothing: %v", err)
	}
}

// The successor of a thread is followed next, from its beginning; one that a
// damaged transcript names is not.
func TestFollowChain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(id thread.ID) string { return filepath.Join(dir, string(id)+".jsonl") }
	of := func(id thread.ID) records.Transcript { return records.File(path(id)) }
	event := func(seq, kind, next string) string {
		return `{"seq":` + seq + `,"event_type":"` + kind + `","payload":{"new_thread_id":"` + next + `"}}` + "\n"
	}
	appendTo(t, path("a-1"), event("1", "cognition_out", "x-1")+event("2", "thread_handoff", "b-1")+event("3", "checkpoint", ""))
	appendTo(t, path("b-1"), event("4", "thread_completed", "")+event("5", "thread_resumed", "c-1"))
	for name, next := range map[string]string{"a circle": "a-1", "no id": "../a-1", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			if err := os.Remove(path("c-1")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			appendTo(t, path("c-1"), event("6", "thread_handoff", next))
			over := make(chan struct{})
			close(over)
			var seen []int64
			err := followChain(t.Context(), of, "a-1", over, func(e thread.Event) error {
				seen = append(seen, e.Seq)
				return nil
			})
			if want := []int64{1, 2, 4, 5, 6}; err != nil || !slices.Equal(seen, want) {
				t.Errorf("saw %v, %v; want %v", seen, err, want)
			}
		})
	}
}
