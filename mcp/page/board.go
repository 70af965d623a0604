package page

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// board answers with how the threads stand: all of it, or what has changed since a
// version; as a stream with what changes from now on, too.
func (p *Page) board(ctx context.Context, c *call) (any, error) {
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	since, options := c.query("since"), board.Options{Top: thread.ID(c.query("top"))}
	keeper := project.Control.Board
	if !c.flag("stream") {
		return keeper.Since(ctx, since, options)
	}
	return p.stream(ctx, c, func(ctx context.Context, send func(any) error) error {
		err := keeper.Follow(ctx, since, options, func(b board.Board) error { return send(b) })
		if errors.Is(err, board.ErrOver) {
			return nil // the project was opened anew: the page asks again, and is shown that one
		}
		return err
	})
}
