package sqlite

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// shrinker is the part of a [Store] that gives room back.
type shrinker struct{ registry, ledger *database }

// Vacuum implements [store.Shrinker].
func (s shrinker) Vacuum(ctx context.Context, alone bool) (done []store.Vacuumed, err error) {
	for _, d := range []*database{s.registry, s.ledger} {
		v, err := d.Vacuum(ctx, alone)
		if err != nil {
			return done, fmt.Errorf("vacuum the %s: %w", d.name, err)
		}
		done = append(done, store.Vacuumed{Name: d.name, Before: v.Before, After: v.After, Kept: v.Kept})
	}
	return done, nil
}
