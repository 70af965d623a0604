package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Afterwards is the money of what the last hooks of threads buy themselves.
type Afterwards interface {
	// SpendAfter adds to what a thread has come to that has ended: its last hooks have
	// bought something. Its own spend, which it was signed with, stays. The amount comes
	// out of what it had left and counts with every ancestor as ReserveAfter has it; less
	// than 0 gives back what was added so.
	SpendAfter(ctx context.Context, id thread.ID, amount thread.Micros, at time.Time) error
}
