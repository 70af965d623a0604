package threads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// handful is how many ids are named where one was wanted.
	handful = 5
	// maxSearched is among how many of the newest threads those are looked for.
	maxSearched = 1000
)

// NotFound stands for the state of a thread that there is none of.
const NotFound thread.State = "not_found"

// Nearest are the threads that a mistyped id may mean, newest first: those that
// contain it, and those whose id up to its length is a few edits away.
func (t *Threads) Nearest(ctx context.Context, given thread.ID) []thread.ID {
	return t.NearestOf(ctx, given)[given]
}

// maxGuessed is for how many unknown ids of one call those are named that may be meant.
const maxGuessed = 50

// NearestOf is Nearest for several ids, the first of them.
func (t *Threads) NearestOf(ctx context.Context, given ...thread.ID) map[thread.ID][]thread.ID {
	if len(given) == 0 {
		return nil
	}
	rows, _, err := t.Store.List(ctx, store.Filter{Limit: maxSearched})
	if err != nil {
		return nil // the suggestions are a courtesy
	}
	ids := make([]thread.ID, len(rows))
	for i, rec := range rows {
		ids[i] = rec.ThreadID
	}
	near := map[thread.ID][]thread.ID{}
	for _, id := range given[:min(len(given), maxGuessed)] {
		near[id] = nearIDs(id, ids)
	}
	return near
}

func nearIDs(given thread.ID, ids []thread.ID) (near []thread.ID) {
	wanted := strings.ToLower(string(given))
	most := max(2, len(wanted)/3) // as for the ids of items
	for _, known := range ids {
		id := strings.ToLower(string(known))
		if strings.Contains(id, wanted) || item.EditDistance(wanted, id[:min(len(id), len(wanted))], most) <= most {
			near = append(near, known)
		}
		if len(near) == handful {
			break
		}
	}
	return near
}

// NoThread says that there are no threads of some ids: that they were deleted, or which
// may be meant.
func (t *Threads) NoThread(ctx context.Context, ids ...thread.ID) error {
	if gone := t.Deleted(ctx, ids...); gone != nil {
		return gone
	}
	f := tool.Faultf(tool.CodeNotFound, "%w: %s", thread.ErrNotFound, listed(ids)).WithHint("list_threads shows the threads of this project")
	var texts []string
	near := t.NearestOf(ctx, ids...)
	for _, id := range ids[:min(len(ids), handful)] {
		for _, known := range near[id] {
			if !slices.Contains(texts, string(known)) {
				texts = append(texts, string(known))
			}
		}
	}
	if len(texts) > 0 {
		return f.With("nearest_ids", texts)
	}
	return f
}

// Deleted tells that a thread was deleted, where each of some was; else it is nil.
func (t *Threads) Deleted(ctx context.Context, ids ...thread.ID) error {
	gone, err := t.Store.Deletions(ctx, store.DeletionFilter{IDs: ids})
	if err != nil || len(gone) == 0 || len(gone) < len(ids) {
		return nil //nolint:nilerr // the caller then says that there is no such thread
	}
	return Fault(&thread.DeletedError{ID: ids[0], At: gone[0].At})
}

// listed joins ids, a handful of them.
func listed(ids []thread.ID) string {
	var b strings.Builder
	for i, id := range ids[:min(len(ids), handful)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.100s", id)
	}
	if more := len(ids) - handful; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// LookAsked is Look for the id that a caller gave.
func (t *Threads) LookAsked(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := t.Look(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		err = t.NoThread(ctx, id)
	}
	return rec, err
}

// Known sorts out the ids that name threads.
func (t *Threads) Known(ctx context.Context, ids []thread.ID) (known, unknown []thread.ID, err error) {
	rows, unknown, err := t.LookAll(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if _, found := rows[id]; found {
			known = append(known, id)
		}
	}
	return known, unknown, nil
}
