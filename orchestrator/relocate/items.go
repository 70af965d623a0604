package relocate

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Items counts the snapshots that threads work by.
type Items struct {
	Snapshots int `json:"snapshots"`
	// Lost are threads whose snapshot cannot be had: missing or altered in the old place, it
	// is so in the new one.
	Lost int `json:"lost,omitempty"`
}

// carrier carries snapshots into the new place, each once.
type carrier struct {
	move  Move
	names map[string]string // there, by those in the old place; empty: it cannot be had
	done  Items
}

// of is the snapshot of a thread as the new place names it. It is kept there for the thread,
// which may have come with a move that was cut short, long ago.
func (c *carrier) of(ctx context.Context, meta thread.Meta) (name string, err error) {
	if meta.Snapshot == "" || meta.Imported != nil {
		return meta.Snapshot, nil
	}
	there, known := c.names[meta.Snapshot]
	if !known {
		if there, err = c.carry(ctx, meta.Snapshot); err != nil {
			return "", err
		}
		c.names[meta.Snapshot] = there
	}
	if there == "" {
		c.done.Lost++
		return meta.Snapshot, nil
	}
	if meta.ParentID != "" { // kept for the thread above it
		return there, nil
	}
	if err := c.move.To.Items.Name(ctx, meta.ThreadID, snapshot.Hash(there)); err != nil {
		return "", fmt.Errorf("keep the snapshot of its items: %w", err)
	}
	c.move.Crashpoints.At(CrashItems)
	return there, nil
}

func (c *carrier) carry(ctx context.Context, name string) (string, error) {
	there, err := c.move.From.Items.Carry(ctx, c.move.To.Items, snapshot.Hash(name))
	if errors.Is(err, snapshot.ErrUnusable) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c.done.Snapshots++
	return string(there), nil
}
