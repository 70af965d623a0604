package search

import (
	"context"
	"sync"
	"time"
)

// builder indexes what a search had no time for, batch by batch, while searches are
// answered in between.
type builder struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{} // nil: it was never started
	items  int           // that there are
	todo   int           // of them, not indexed yet
}

// start indexes changes until they are done, the index is closed, or it fails: then
// the next search finds the same changes, and tells why.
func (b *builder) start(ctx context.Context, x *Index, changes []change, items int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	b.done, b.items, b.todo = done, items, len(changes)
	go func() {
		defer close(done)
		defer b.set(0)
		for len(changes) > 0 {
			n := min(batchSize, len(changes))
			if x.indexInTurn(ctx, changes[:n]) != nil {
				return
			}
			changes = changes[n:]
			b.set(len(changes))
		}
	}()
}

// indexInTurn indexes a batch when no search runs.
func (x *Index) indexInTurn(ctx context.Context, changes []change) error {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if x.db == nil { // it failed, and is opened by the next search
		return errForeign
	}
	return x.index(ctx, changes)
}

func (b *builder) set(todo int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.todo = todo
}

// left is how many items it has still to index.
func (b *builder) left() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.todo
}

// running is closed when it has ended; nil when it has not begun.
func (b *builder) running() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done
}

// end stops it and waits.
func (b *builder) end() {
	b.mu.Lock()
	cancel, done := b.cancel, b.done
	b.mu.Unlock()
	if done == nil {
		return
	}
	cancel()
	<-done
}

// awaitBuilder waits for the builder as long as a search has patience.
func (x *Index) awaitBuilder(ctx context.Context) error {
	done := x.builder.running()
	if done == nil {
		return nil
	}
	patience := time.NewTimer(x.patience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
