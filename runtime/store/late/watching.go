package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// watching is the [store.Watcher] of a Store.
type watching struct{ late *Store }

// Changes implements [store.Watcher]: the store coming to be is a change.
func (w watching) Changes(ctx context.Context) <-chan struct{} {
	return w.listen(ctx, store.Store.Changes)
}

// Milestones implements [store.Watcher], as Changes does.
func (w watching) Milestones(ctx context.Context) <-chan struct{} {
	return w.listen(ctx, store.Store.Milestones)
}

// listen listens to the store, as soon as there is one.
func (w watching) listen(ctx context.Context, to func(store.Store, context.Context) <-chan struct{}) <-chan struct{} {
	if opened := w.late.seen(); opened != nil {
		return to(opened, ctx)
	}
	changes := make(chan struct{}, 1)
	go func() {
		defer close(changes)
		select {
		case <-w.late.here:
		case <-ctx.Done():
			return
		}
		if opened := w.late.seen(); opened != nil {
			forward(to(opened, ctx), changes)
		}
	}()
	return changes
}

// forward passes wake-ups on; those that nobody has taken yet are one.
func forward(from <-chan struct{}, to chan<- struct{}) {
	for awake := true; awake; _, awake = <-from {
		select {
		case to <- struct{}{}:
		default:
		}
	}
}
