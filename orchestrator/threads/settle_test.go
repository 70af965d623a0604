package threads

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// shaken is a store that fails a number of times.
type shaken struct {
	store.Store

	fails, asked int
}

func (s *shaken) Get(_ context.Context, id thread.ID) (thread.Record, error) {
	if s.asked++; s.asked <= s.fails {
		return thread.Record{}, errors.New("the store is read-only")
	}
	return thread.Record{ThreadID: id, Status: thread.Error}, nil
}

func (*shaken) Changes(context.Context) <-chan struct{} { return nil }

// TestSettledLater: a thread whose process has ended while the store could not be used is
// settled when it can, and nobody tries any more once the watch is over.
func TestSettledLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settling := func(s *shaken) *Threads {
			return &Threads{Deps: Deps{Store: s, Log: zerolog.Nop()}, Sweeper: &recovery.Sweeper{}}
		}
		s := &shaken{fails: 5}
		settling(s).settleDead(t.Context(), "d-1")
		if s.asked != 6 {
			t.Errorf("it was asked %d times", s.asked)
		}
		ctx, over := context.WithTimeout(t.Context(), 3*settleEvery+settleEvery/2)
		defer over()
		s = &shaken{fails: 1000}
		settling(s).settleDead(ctx, "d-1")
		if s.asked != 4 {
			t.Errorf("it was asked %d times until the end", s.asked)
		}
	})
}
