package cli

import (
	"context"
	"errors"
	"io"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// lateLeft finds what the threads of a project have left for commands that need no
// threads otherwise: their registry is opened when somebody asks for it.
type lateLeft struct {
	open func() (*project, error)
}

func newLateLeft(ctx context.Context, sys System, dir string) lateLeft {
	return lateLeft{func() (*project, error) { return openProject(ctx, sys, dir, newLog(sys, io.Discard)) }}
}

// Find implements [resolve.Left].
func (l lateLeft) Find(id string, of thread.ID) (found *resolve.Found, err error) {
	p, err := l.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.resolver.For(of).Find(item.Knowledge, id)
}
