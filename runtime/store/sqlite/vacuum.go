package sqlite

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// Vacuum implements [store.Shrinker].
func (s *Store) Vacuum(ctx context.Context, alone bool) (done []store.Vacuumed, err error) {
	for _, d := range []*database{s.registry, s.ledger} {
		v, err := d.Vacuum(ctx, alone)
		if err != nil {
			return done, fmt.Errorf("vacuum the %s: %w", d.name, err)
		}
		done = append(done, store.Vacuumed{Name: d.name, Before: v.Before, After: v.After, Kept: v.Kept})
	}
	return done, nil
}
