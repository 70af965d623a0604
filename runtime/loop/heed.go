package loop

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// heedRecord interrupts whatever the thread does when a cancel is on record, an end that
// somebody else gave it, or another run. A process nearby also sends a signal, which comes
// sooner; another container or machine can only put it on record. The row is asked
// again and again: to be woken by commits would keep hundreds of threads busy with
// those of each other, and as long as nobody commits the answer costs no query.
func (r *run) heedRecord(ctx context.Context) (_ context.Context, done func()) {
	ctx, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		look := time.NewTicker(r.lookEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			rec, err := r.Store.Get(ctx, r.ID)
			switch {
			case err != nil: // the next write meets it too, and says so
			case rec.Status.Terminal():
				stop(fmt.Errorf("thread %s is %s: %w", r.ID, rec.Status, thread.ErrSettled))
			case tenure{r}.isOthers(rec):
				stop(fmt.Errorf("thread %s: %w", r.ID, store.ErrFenced))
			case !rec.CancelRequestedAt.IsZero():
				awaitSignal(ctx)
				stop(rec.CancelCause())
			default:
				reader{r}.heed(ctx, rec)
			}
		}
	})
	return ctx, func() {
		stop(nil)
		watching.Wait()
	}
}

// awaitSignal waits until the signal of a cancel on record has ended ctx, which tells more:
// whoever puts one on record signals afterwards, where he can.
func awaitSignal(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(signalWithin):
	}
}

// signalWithin is more than it takes to signal what was put on record.
const signalWithin = 200 * time.Millisecond
