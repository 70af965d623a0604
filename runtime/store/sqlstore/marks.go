package sqlstore

import "context"

// Marks of a write, in its context.
type (
	minorKey      struct{}
	repeatableKey struct{}
)

// minor marks a write between two milestones of a thread: see [store.Watcher.Milestones].
func minor(ctx context.Context) context.Context { return context.WithValue(ctx, minorKey{}, true) }

// IsMinor reports whether a write is no milestone of a thread.
func IsMinor(ctx context.Context) bool { return ctx.Value(minorKey{}) != nil }

// repeatable marks a write that may be done twice, and comes to the same.
func repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

// IsRepeatable reports whether an engine that cannot know whether a write was done does it
// again.
func IsRepeatable(ctx context.Context) bool { return ctx.Value(repeatableKey{}) != nil }
