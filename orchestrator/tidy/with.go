package tidy

import (
	"context"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// along is what goes with threads beside their files: how much of each belonging. A belonging
// that could not be looked at goes too, and unknown says why.
type along struct {
	of      []Belonging
	counts  []int
	unknown []string
}

// goesWith counts what else goes with sets. One that cannot be looked at keeps no thread.
func (t *Tidier) goesWith(ctx context.Context, sets ...set) along {
	var ids []thread.ID
	for _, s := range sets {
		ids = append(ids, s.ids()...)
	}
	a := along{of: t.Belongings, counts: make([]int, len(t.Belongings))}
	if len(ids) == 0 {
		return a
	}
	for i, b := range a.of {
		if b.Count == nil {
			continue
		}
		n, err := b.Count(ctx, ids)
		if err != nil {
			a.unknown = append(a.unknown, fmt.Sprintf("%s, which could not be looked at: %v", b.Name, err))
		}
		a.counts[i] = n
	}
	return a
}

// and is what goes in two steps.
func (a along) and(next along) along {
	sum := along{of: next.of, counts: slices.Clone(next.counts), unknown: next.unknown}
	for i, n := range a.counts {
		sum.counts[i] += n
	}
	for _, why := range a.unknown {
		if !slices.Contains(sum.unknown, why) {
			sum.unknown = append(sum.unknown, why)
		}
	}
	return sum
}

// told says it in a few words for each.
func (a along) told() (with []string) {
	for i, n := range a.counts {
		if n > 0 && a.of[i].Tell != nil {
			with = append(with, a.of[i].Tell(n))
		}
	}
	return append(with, a.unknown...)
}
