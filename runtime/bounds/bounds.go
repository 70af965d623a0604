// Package bounds finds what the limits of a running thread can be raised to.
package bounds

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Source is where limits and money of threads stand.
type Source struct {
	Ledger  store.Ledger
	Records records.Records
}

// Most is what the limits of a thread below parent can be raised to: the
// parent's, and of its money what it has left. It is nil without a parent, as
// nothing bounds a root but whoever raises it.
func (s Source) Most(ctx context.Context, now thread.Limits, parent thread.ID) (*thread.Limits, error) {
	if parent == "" {
		return nil, nil
	}
	meta, err := s.Records.Of(parent).Meta().Read()
	if err != nil {
		return nil, fmt.Errorf("limits of the parent: %w", err)
	}
	if meta.ThreadID != parent { // correctly signed, and somebody else's
		return nil, fmt.Errorf("limits of the parent: thread.json of %s is that of %s", parent, meta.ThreadID)
	}
	budget, err := s.Ledger.Budget(ctx, parent)
	if err != nil && !errors.Is(err, store.ErrNoBudget) {
		return nil, err
	}
	var left thread.Micros // a parent that has ended gives nothing more
	if budget.Active {
		left = budget.Remaining()
	}
	most := limit.Most(now, meta.Limits, left)
	return &most, nil
}
