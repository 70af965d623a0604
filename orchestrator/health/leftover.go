package health

import (
	"context"
	"errors"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// SweepFolders removes the folders that starts have left which were killed before
// their thread was registered, and returns how many those were. Such a folder has no
// row, no thread.json and no transcript, nobody holds its lock, and it is older than
// what may still be on its way. Anything else in it keeps it.
func (c *Checker) SweepFolders(ctx context.Context) (removed int, err error) {
	var failed []error
	_, walked := c.Threads.Records.Walk(math.MaxInt, func(f records.Found) error {
		if f.Linked || f.HasMeta || f.HasWords || c.justMade(f.ID) {
			return context.Cause(ctx)
		}
		switch gone, err := c.removeLeftover(ctx, f.ID); {
		case err != nil:
			failed = append(failed, err)
		case gone:
			removed++
		}
		return context.Cause(ctx)
	})
	return removed, errors.Join(append(failed, walked)...)
}

// removeLeftover removes one folder. Of what is in it only the files of a start are
// removed, and none that somebody has who makes a thread in it meanwhile.
func (c *Checker) removeLeftover(ctx context.Context, id thread.ID) (bool, error) {
	left := c.Threads.Records.Of(id)
	switch err := left.Check(); {
	case errors.Is(err, thread.ErrUnfit): // somebody else's
		return false, nil
	case err != nil:
		return false, err
	}
	if held, err := c.Threads.Life.Held(life.Key{Thread: id}); held || err != nil {
		return false, err
	}
	if _, err := c.Threads.Store.Get(ctx, id); !errors.Is(err, thread.ErrNotFound) {
		return false, err
	}
	return left.RemoveLeftover()
}
