package threads

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Label gives a thread, and all of its chain, another name, other metadata (a JSON merge
// patch) or both; empty: as it is. The thread from,
// where one asks, may label those below it only; empty: whoever works with the project,
// or the thread that this process runs in.
func (t *Threads) Label(ctx context.Context, id, from thread.ID, name string, metadata json.RawMessage) (thread.Record, error) {
	if name == "" && len(metadata) == 0 {
		return thread.Record{}, tool.Faultf(tool.CodeBadArguments, "neither name nor metadata is given").
			WithHint("give name, or metadata as an object whose members replace those of the thread; null removes one")
	}
	if from = cmp.Or(from, t.Parent); from != "" {
		if err := t.IsBelow(ctx, id, from, "so it cannot be renamed from there"); err != nil {
			return thread.Record{}, err
		}
	}
	if _, err := t.LookAsked(ctx, id); err != nil { // which names those that may have been meant
		return thread.Record{}, Fault(err)
	}
	rec, err := t.Store.Label(ctx, id, store.LabelChange{Name: name, Metadata: metadata}, t.Now())
	if err != nil {
		return thread.Record{}, Fault(err)
	}
	return rec, nil
}
