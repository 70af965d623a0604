package threads

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// OwnMeta reads the thread.json of a thread, from which another one gets rights.
func (t *Threads) OwnMeta(id thread.ID) (thread.Meta, error) {
	meta, err := t.Records.Of(id).Meta().Read()
	if err == nil && meta.ThreadID != id { // correctly signed, and somebody else's
		err = fmt.Errorf("thread.json of %s is that of %s", id, meta.ThreadID)
	}
	return meta, err
}

// IsBelow refuses a thread that acts on one it has not started, itself or
// through others.
func (t *Threads) IsBelow(ctx context.Context, id, above thread.ID, so string) error {
	below, err := lineage.IsBelow(id, above, t.Getter(ctx))
	if err != nil {
		return Fault(err)
	}
	if !below {
		return tool.Faultf(tool.CodePermissionDenied, "thread %s was not started below %s, %s", id, above, so)
	}
	return nil
}

// NotUpwards refuses a wait that could only end with its time: a thread's for
// itself, or for one that waits for it.
func (t *Threads) NotUpwards(ctx context.Context, self thread.ID, ids []thread.ID) error {
	if self == "" {
		return nil
	}
	for _, id := range ids {
		carrier, err := lineage.Resolve(id, t.Getter(ctx))
		if errors.Is(err, thread.ErrNotFound) {
			continue // the wait says so
		}
		if err != nil {
			return Fault(err)
		}
		above, err := lineage.IsBelow(self, carrier.ThreadID, t.Getter(ctx))
		if err != nil {
			return Fault(err)
		}
		if carrier.ThreadID == self || above {
			return tool.Faultf(tool.CodeUnsupported, "thread %s cannot wait for %s, which is itself or above it", self, id)
		}
	}
	return nil
}
