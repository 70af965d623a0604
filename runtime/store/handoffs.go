package store

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Handoffs keeps what running threads are asked to hand over. When one was asked is
// [thread.Record.HandoffAskedAt].
type Handoffs interface {
	// AskHandoff asks a thread to hand over after its turn. It takes the place of what was
	// asked before. A thread that does not run, or is asked to stop, is an error that wraps
	// thread.ErrSettled, and one that does not exist thread.ErrNotFound. It is on disk when it
	// returns, and wakes the receivers of Watcher.Changes.
	AskHandoff(ctx context.Context, id thread.ID, r thread.HandoffRequest) error
	// AskedHandoff returns what a thread was asked last, or nil.
	AskedHandoff(ctx context.Context, id thread.ID) (*thread.HandoffRequest, error)
}
