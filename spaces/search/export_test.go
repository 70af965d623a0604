package search

import (
	"context"
	"time"
)

// TestOptions are what tests set of an index.
type TestOptions struct {
	Patience, MaxFinding time.Duration
	MaxItems             int
	Step                 func(name string)
}

// OpenWith is [Open] with them; what is zero is as usual.
func OpenWith(ctx context.Context, path string, src Source, o TestOptions) (*Index, error) {
	all := options{patience: o.Patience, maxFinding: o.MaxFinding, maxItems: o.MaxItems, now: time.Now, step: o.Step}
	if all.maxFinding == 0 {
		all.maxFinding = maxFinding
	}
	if all.maxItems == 0 {
		all.maxItems = maxItems
	}
	if all.step == nil {
		all.step = func(string) {}
	}
	return open(ctx, path, src, all)
}
