package cli

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestStreamFails holds that an output nobody takes ends the wait for a thread, and a
// transcript that cannot be read only where the caller says so: what waits cancels the
// thread.
func TestStreamFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	appendTo(t, filepath.Join(dir, "x-1.jsonl"), lineOne)
	readable := func(thread.ID) records.Transcript { return records.File(filepath.Join(dir, "x-1.jsonl")) }
	damaged := func(thread.ID) records.Transcript { return records.File(dir) }
	gone := errors.New("nobody reads")
	seen := func(thread.Event) error { return nil }
	for name, c := range map[string]struct {
		of   func(thread.ID) records.Transcript
		see  func(thread.Event) error
		keep bool // the caller goes on without what cannot be read
		ends bool
	}{
		"output":             {of: readable, see: func(thread.Event) error { return gone }, keep: true, ends: true},
		"transcript, run":    {of: damaged, see: seen, keep: true},
		"transcript, looked": {of: damaged, see: seen, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan struct{})
			unread := func(err error) error {
				close(told)
				if c.keep {
					return nil
				}
				return err
			}
			ended := false
			err := stream(t.Context(), c.of, "x-1", c.see, unread, func(ctx context.Context) error {
				if c.ends {
					<-ctx.Done()
				} else {
					select {
					case <-told:
					case <-ctx.Done():
					}
				}
				ended = ctx.Err() != nil
				return nil
			})
			if ended != c.ends || (err != nil) != c.ends {
				t.Errorf("the wait is ended: %t, with %v; want %t", ended, err, c.ends)
			}
		})
	}
}
