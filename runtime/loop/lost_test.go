package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// cutRunner is a runner that the server is away for once.
type cutRunner struct {
	store.Runner

	cut bool
}

// Apply implements [store.Runner].
func (r *cutRunner) Apply(ctx context.Context, c store.Change) (thread.Record, error) {
	if r.cut {
		r.cut = false
		return thread.Record{}, fmt.Errorf("no answer: %w (%w)", context.DeadlineExceeded, store.ErrAway)
	}
	return r.Runner.Apply(ctx, c)
}

// TestStoreAway: the server of the store is away as a thread claims its row, and back when it
// ends. That is tried again as a crash is.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.change = func(r *run) { r.Runner = &cutRunner{r.Runner, true} }
	rec := h.run(job{meta: func(m *thread.Meta) {
		m.Retry = &thread.RetryPolicy{Attempts: 2, Backoff: thread.BackoffFixed, BaseSeconds: 3600, On: []string{thread.RetryCrash}}
	}})
	if o := rec.Outcome; rec.Status != thread.Error || o.Error.Code != thread.CodeStoreAway || o.Retry == nil || o.Retry.Attempt != 2 {
		t.Errorf("%s: %+v", rec.Status, o)
	}
}

// TestThreadLost: another run has the thread, which goes on, as after a standby was promoted
// that had it still queued. The one before breaks off what it is in, stops nothing that is
// the other's, writes nothing, and its log says what it has spent.
func TestThreadLost(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	inTrouble(t, func(t *testing.T, h *house, when string) {
		id := h.register(job{})
		d := h.deps(id)
		rec, err := h.store.Replace(t.Context(), id, "", "own")
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		d.Runner, d.Log = h.store.Runner(id, rec.Run), zerolog.New(&log)
		r := newRun(d)
		r.lookEvery = time.Millisecond
		before := make(chan thread.Record, 1)
		go func() {
			h.awaitTrouble(t.Context(), id)
			now, err := h.store.Replace(t.Context(), id, rec.Run, "another")
			if err != nil {
				t.Error(err)
			}
			before <- now
			if when == duringTool {
				close(h.tools.release)
			}
		}()
		if _, err := r.toEnd(t.Context()); !errors.Is(err, store.ErrFenced) {
			t.Errorf("it ends with %v", err)
		}
		was := <-before
		now, err := h.store.Get(t.Context(), id)
		if err != nil || now.Status != thread.Running || now.Run != was.Run || now.Cost != was.Cost || len(h.stopped) > 0 {
			t.Errorf("%+v, was %+v; stopped below %v; %v", now, was, h.stopped, err)
		}
		if r.cost.Spend == 0 || !strings.Contains(log.String(), `"lost_spend":"`+r.cost.Spend.String()+`"`) {
			t.Errorf("it has spent %s, and says\n%s", r.cost.Spend, log.String())
		}
	})
}
