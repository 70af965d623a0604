package tool

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Purse pays for what a tool buys, out of the money of the thread that calls it. It is
// safe for concurrent use.
type Purse interface {
	// Hold keeps the most that a purchase can cost. Where the thread has not got as much
	// left, nothing is held, and the error is a *[Fault]. Settle is called once, when
	// the purchase is over, with what it did cost: the ledger has it at once.
	Hold(ctx context.Context, most thread.Micros) (settle func(cost thread.Micros) error, err error)
}
