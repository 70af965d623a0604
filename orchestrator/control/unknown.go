package control

import (
	"context"
	"errors"
	"fmt"
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
	// notFound stands for the state of a thread that there is none of.
	notFound thread.State = "not_found"
)

// Nearest are the threads that a mistyped id may mean, newest first: those that
// contain it, and those whose id up to its length is a few edits away.
func (c *Controller) Nearest(ctx context.Context, given thread.ID) []thread.ID {
	rows, _, err := c.Store.List(ctx, store.Filter{Limit: maxSearched})
	if err != nil {
		return nil // the suggestions are a courtesy
	}
	ids := make([]thread.ID, len(rows))
	for i, rec := range rows {
		ids[i] = rec.ThreadID
	}
	return nearIDs(given, ids)
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

// noThread says that there is no thread of an id, and which may be meant.
func (c *Controller) noThread(ctx context.Context, id thread.ID) error {
	f := tool.Faultf(tool.CodeNotFound, "%w: %s", thread.ErrNotFound, id).WithHint("list_threads shows the threads of this project")
	if near := c.Nearest(ctx, id); len(near) > 0 {
		texts := make([]string, len(near))
		for i, id := range near {
			texts[i] = string(id)
		}
		return f.With("nearest_ids", texts)
	}
	return f
}

// lookAsked is look for the id that a caller gave.
func (c *Controller) lookAsked(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := c.look(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		err = c.noThread(ctx, id)
	}
	return rec, err
}

// unknownResults are the results of ids that name no thread.
func (c *Controller) unknownResults(ctx context.Context, ids []thread.ID) map[thread.ID]Result {
	results := make(map[thread.ID]Result, len(ids))
	for _, id := range ids {
		results[id] = Result{
			Status: notFound, Nearest: c.Nearest(ctx, id),
			Error: fmt.Sprintf("%v: %s; list_threads shows the threads of this project", thread.ErrNotFound, id),
		}
	}
	return results
}

// known sorts out the ids that name threads.
func (c *Controller) known(ctx context.Context, ids []thread.ID) (known, unknown []thread.ID, err error) {
	rows, unknown, err := c.lookAll(ctx, ids)
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

// statesOf are the states of several threads at one glance.
func statesOf(results map[thread.ID]Result) map[thread.ID]thread.State {
	if len(results) < 2 {
		return nil
	}
	states := make(map[thread.ID]thread.State, len(results))
	for id, r := range results {
		states[id] = r.Status
	}
	return states
}
