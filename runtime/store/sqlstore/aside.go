package sqlstore

import "context"

type asideKey struct{}

// aside marks the context of a write that puts no thread in the queue, frees no slot and
// asks nobody to stop: receivers of [store.Watcher.QueueChanges] need not look.
func aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

// IsAside reports whether a write of this context concerns nobody who waits for the queue.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) != nil }
