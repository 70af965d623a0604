package loop

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

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
