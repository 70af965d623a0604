package threads

import (
	"context"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// SendWorkspace records in the metadata of a thread what its workspace begins with, and puts
// it among its artifacts for the machine that runs it. Where the threads of the project run
// on one machine, or it works in the workspace of another, nothing is done.
func (t *Threads) SendWorkspace(ctx context.Context, rec thread.Record, meta *thread.Meta) error {
	w := meta.Workspace
	if w == nil || w.Of != rec.ThreadID || t.Workspaces == nil {
		return nil
	}
	now, bundle, err := t.Workspaces.Pack(ctx, *w)
	if err != nil || len(bundle) == 0 {
		return err
	}
	if _, err := t.Records.By(rec.ThreadID, rec.Run).Artifacts().Write(now.Bundle, bundle); err != nil {
		return fmt.Errorf("keep what the thread's workspace begins with: %w", err)
	}
	meta.Workspace = &now
	return nil
}
