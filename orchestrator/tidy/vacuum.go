package tidy

import (
	"context"
	"errors"
	"math"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// Vacuumed is what a vacuum did.
type Vacuumed struct {
	Success bool             `json:"success"`
	Before  int64            `json:"before_bytes"`
	After   int64            `json:"after_bytes"`
	Parts   []store.Vacuumed `json:"parts"`
}

// Vacuum makes the databases, the search index and memory as small as they can be, and compresses
// the transcripts that the sweep would, however many. Threads go on
// meanwhile; work that they would have to wait for too long is not done while any lives,
// which is said. The leftovers of deleted threads are removed first.
func (t *Tidier) Vacuum(ctx context.Context) (v Vacuumed, err error) {
	_, unfinished := t.Continue(ctx, nil)
	load, err := t.Threads.Store.QueueLoad(ctx)
	if err != nil {
		return v, threads.Fault(err)
	}
	parts, err := t.Threads.Store.Vacuum(ctx, load.Occupied+load.Queued == 0)
	for _, compact := range t.Compact {
		if err != nil {
			break
		}
		var part store.Vacuumed
		if part, err = compact(ctx); part.Before > 0 {
			parts = append(parts, part)
		}
	}
	if err == nil {
		var said []store.Vacuumed
		said, err = t.vacuumTranscripts(ctx)
		parts = append(parts, said...)
	}
	if err := errors.Join(unfinished, err); err != nil {
		return v, threads.Fault(err)
	}
	v.Success, v.Parts = true, parts
	for _, part := range parts {
		v.Before += part.Before
		v.After += part.After
	}
	return v, nil
}

// vacuumTranscripts compresses what the settings say. It returns nothing where there was
// nothing to do.
func (t *Tidier) vacuumTranscripts(ctx context.Context) ([]store.Vacuumed, error) {
	s, err := t.schedule()
	if err != nil || s.CompressAfter == 0 {
		return nil, err
	}
	n, part, err := t.compress(ctx, t.Threads.Now().Add(-s.CompressAfter), math.MaxInt64)
	if n == 0 {
		return nil, err
	}
	return []store.Vacuumed{part}, err
}
