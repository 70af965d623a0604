package store

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Latest finds what directives have left.
type Latest interface {
	// Latest returns the thread that another one, of, means by the latest of a directive:
	// the newest that has completed, of those below the root that both have. When none of
	// those has completed it is the newest of them in any state, for nothing from another
	// tree stands in for what this one has yet to do. When there is none below that root,
	// and where of is empty, it is the newest of the project that has completed, else the
	// newest in any state, and without any the error wraps thread.ErrNotFound.
	//
	// The threads above of do not count, nor does its own chain: they cannot have left
	// anything for it. Neither do the entries of a set, for which the set stands, nor runs
	// of tools. Newest is what was created last, and of what was created at the same time
	// what was registered last.
	Latest(ctx context.Context, directive string, of thread.ID) (thread.Record, error)
}
