package sqlstore

import "context"

type minorKey struct{}

// minor marks the context of a write between two milestones of a thread: see
// [store.Watcher.Milestones].
func minor(ctx context.Context) context.Context { return context.WithValue(ctx, minorKey{}, true) }

// IsMinor reports whether a write of this context is no milestone of a thread.
func IsMinor(ctx context.Context) bool { return ctx.Value(minorKey{}) != nil }
