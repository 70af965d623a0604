package threads

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// HoldItems keeps the snapshot that a thread works by for as long as the thread. That of a
// child is kept for the thread above it.
func (t *Threads) HoldItems(ctx context.Context, meta thread.Meta) error {
	if meta.Snapshot == "" || meta.ParentID != "" || t.Snapshots == nil {
		return nil
	}
	if err := t.Snapshots.Name(ctx, meta.ThreadID, snapshot.Hash(meta.Snapshot)); err != nil {
		return fmt.Errorf("keep the snapshot of the thread's items: %w", err)
	}
	return nil
}

// ReadyItems has the items of the snapshot that a thread works by ready on this machine, and
// returns the folder in which they are laid out; empty: they are those of the project and
// its user. Below says that the thread was not queued, but is started by this process.
func (t *Threads) ReadyItems(ctx context.Context, items string, below bool) (folder string, err error) {
	if items == "" || t.Snapshots == nil {
		return "", nil
	}
	ready := t.Snapshots.Ready
	if below {
		ready = t.Snapshots.Below
	}
	if folder, err = ready(ctx, snapshot.Hash(items)); err != nil {
		return "", ItemsFault(err)
	}
	return folder, nil
}

// ItemsFault tells what is wrong with a snapshot to a model.
func ItemsFault(err error) error {
	switch {
	case errors.As(err, new(*snapshot.TooLargeError)):
		return tool.Faultf(tool.CodeUnsupported, "%w", err).WithHint("tell the person").
			WithTry("move what is no item out of .ai/tools, .ai/directives and .ai/knowledge, or set threads: {snapshot: never} in ~/.ai/config/agent/agent.yaml")
	case errors.Is(err, snapshot.ErrUnusable):
		return tool.Faultf(tool.CodeIntegrity, "the items that the thread works by cannot be had: %w", err).
			WithHint("start it again with rye_execute: it takes the items as they are now").WithTry("rye-mcp threads verify, and start the thread again")
	}
	return err
}

// hasThread reports whether there is a thread.
func (t *Threads) hasThread(ctx context.Context, id thread.ID) (bool, error) {
	_, err := t.Store.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) || errors.As(err, new(*thread.DeletedError)) {
		return false, nil
	}
	return err == nil, err
}

// ForgetItems is what is left to do of the snapshot of a thread that goes.
func (t *Threads) ForgetItems(ctx context.Context, rec thread.Record) error {
	if t.Snapshots == nil {
		return nil
	}
	return t.Snapshots.Forget(ctx, rec.ThreadID)
}

// SweepItems removes contents that no thread works by any more, and says how many.
func (t *Threads) SweepItems(ctx context.Context) (did string, err error) {
	if t.Snapshots == nil {
		return "", nil
	}
	done, err := t.Snapshots.Collect(ctx, t.hasThread)
	if done.Contents > 0 {
		did = fmt.Sprintf("%d contents of %d bytes", done.Contents, done.Bytes)
	}
	return did, err
}
