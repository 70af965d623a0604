package threads

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Look returns the row of a thread as it truly is: resolved to the end of its
// chain, and settled when its process is gone.
func (t *Threads) Look(ctx context.Context, id thread.ID) (thread.Record, error) {
	for {
		rec, err := lineage.Resolve(id, t.Getter(ctx))
		if err != nil {
			return rec, err
		}
		now, err := t.Sweeper.Examine(ctx, rec)
		if err != nil {
			return rec, err // as it is stored
		}
		if now.ContinuationThreadID == rec.ContinuationThreadID {
			return now, nil
		}
		id = now.ContinuationThreadID // it was dead and had handed over
	}
}

// LookAll looks at threads, by asked id. Those that there are none of are left out
// and listed, unless there is none at all.
func (t *Threads) LookAll(ctx context.Context, ids []thread.ID) (map[thread.ID]thread.Record, []thread.ID, error) {
	rows := make(map[thread.ID]thread.Record, len(ids))
	var unknown []thread.ID
	for _, id := range ids {
		rec, err := t.Look(ctx, id)
		switch {
		case err == nil:
			rows[id] = rec
		case errors.Is(err, thread.ErrNotFound):
			unknown = append(unknown, id)
		case rec.ThreadID != "" && ctx.Err() == nil:
			rows[id] = unsettled(rec, err)
		default:
			return nil, nil, err
		}
	}
	if len(rows) == 0 {
		return nil, nil, t.NoThread(ctx, unknown...)
	}
	return rows, unknown, nil
}

// unsettled is the row of a thread that cannot be settled, as on a full disk when its
// process is gone: the others are told of all the same. Stored rows have
// an outcome when they have ended, and not before.
func unsettled(rec thread.Record, why error) thread.Record {
	told := Fault(why)
	rec.Outcome = &thread.Outcome{State: rec.Status, Error: &thread.Problem{
		Code: string(told.Code), Message: "how it stands cannot be put on record: " + told.Message,
		Doing: "being settled; the next look tries again",
	}}
	return rec
}
