package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/top"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// TestThroughAway holds that what follows a store is begun anew as long as the store is away, and
// is told of each failure; any other failure ends it.
func TestThroughAway(t *testing.T) {
	t.Parallel()
	away, gone := errors.Join(store.ErrAway, errors.New("no route")), errors.New("closed")
	var told []error
	tries := []error{away, away, gone, away}
	throughAway(t.Context(), 0, func() error {
		err := tries[0]
		tries = tries[1:]
		return err
	}, func(err error) { told = append(told, err) })
	if len(told) != 3 || !errors.Is(told[2], gone) || len(tries) != 1 {
		t.Errorf("told of %v, and %d tries are left", told, len(tries))
	}
	ctx, cancel := context.WithCancel(t.Context())
	throughAway(ctx, 0, func() error { cancel(); return away }, func(err error) { t.Errorf("told of %v after the end", err) })
}

// passing is a transcript that cannot be read while the store is away.
type passing struct {
	records.Transcript
	away *atomic.Bool
}

func (p passing) Open() (records.Reader, error) {
	if p.away.Load() {
		return nil, store.ErrAway
	}
	return p.Transcript.Open()
}

// TestTailThroughAway holds that the chosen thread is told of again when the store is there
// again, and that its failure is told once.
func TestTailThroughAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	appendTo(t, path, lineOne)
	said, shown := passing{records.File(path), new(atomic.Bool)}, make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		tailInto(ctx, said, "x-1", func(msg tea.Msg) {
			for _, piece := range msg.(top.TailMsg).Pieces {
				shown <- piece.Text
			}
		})
	}()
	want := func(text string) {
		t.Helper()
		if got := <-shown; !strings.Contains(got, text) {
			t.Errorf("%q is shown, want %q", got, text)
		}
	}
	want("one")
	said.away.Store(true)
	appendTo(t, path, lineTwo)
	want("cannot be read")
	said.away.Store(false)
	want(" two")
	cancel()
	<-over
}
