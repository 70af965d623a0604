package changeset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Now is the workspace that a thread works in which another one has, as it stands.
func (d *Desk) Now(ctx context.Context, meta thread.Meta) thread.Workspace {
	if d.Threads.Fleet == nil {
		return *meta.Workspace
	}
	return *d.Threads.WorkspaceFor(ctx, meta)
}

// Begun records that a thread works in a workspace of another one, on the machine that w
// names. While that one lives it has recorded so itself. It refuses a workspace that another
// machine has by now.
func (d *Desk) Begun(ctx context.Context, w thread.Workspace) error {
	if d.Threads.Fleet == nil {
		return nil
	}
	owner, now, err := d.Threads.WorkspaceNow(ctx, w.Of, w.Name)
	if err != nil || now == nil || now.At == w.At {
		return err
	}
	if !owner.Status.Terminal() {
		return errElsewhere(*now)
	}
	return d.Threads.AfterEnd(ctx, owner.ThreadID, func(of records.Thread) error {
		meta, err := of.Meta().Read()
		if err != nil {
			return err
		}
		if meta.Workspace == nil || meta.Workspace.Name != w.Name || meta.Workspace.At != "" {
			return errElsewhere(*now)
		}
		at := *meta.Workspace
		at.At, at.AtName = w.At, w.AtName
		meta.Workspace = &at
		return of.Meta().Write(meta)
	})
}

func errElsewhere(w thread.Workspace) error {
	return tool.Faultf(tool.CodeConflict, "%w", &workspace.ElsewhereError{Workspace: w}).
		WithHint("Somebody works in it there. Start this thread again when that has ended.")
}

// Left sends what is in a workspace that a thread has left, where the one that has it has ended
// before and nobody else would.
func (d *Desk) Left(ctx context.Context, w thread.Workspace) error {
	if d.Threads.Fleet == nil {
		return nil
	}
	owner, now, err := d.Threads.WorkspaceNow(ctx, w.Of, w.Name)
	if err != nil || now == nil || !owner.Status.Terminal() {
		return err
	}
	return d.sendLeft(ctx, owner.ThreadID, w.Name)
}

// sendLeft sends what a thread that has ended has left in its workspace, which is here.
func (d *Desk) sendLeft(ctx context.Context, owner thread.ID, name string) error {
	return d.Threads.AfterEnd(ctx, owner, func(of records.Thread) error {
		meta, err := of.Meta().Read()
		if err != nil || meta.Workspace == nil || meta.Workspace.Name != name {
			return err
		}
		err = workspace.Send(ctx, d.Threads.Workspaces, of, &meta)
		if errors.Is(err, fs.ErrNotExist) { // nothing is left in it
			return nil
		}
		return err
	})
}

// recordApplied records for all machines that what a thread has left was applied to the project.
// Without that another machine offers it again.
func (d *Desk) recordApplied(ctx context.Context, rec thread.Record, w thread.Workspace) error {
	if d.Threads.Fleet == nil || !rec.Status.Terminal() || w.Result == "" || w.At != "" || w.Applied == w.Result {
		return nil
	}
	err := d.Threads.AfterEnd(ctx, rec.ThreadID, func(of records.Thread) error {
		meta, err := of.Meta().Read()
		if err != nil || meta.Workspace == nil || meta.Workspace.Result != w.Result {
			return err
		}
		now := *meta.Workspace
		now.Applied = now.Result
		meta.Workspace = &now
		return of.Meta().Write(meta)
	})
	if err != nil {
		err = fmt.Errorf("it is applied, but that could not be recorded for other machines: %w", threads.Fault(err))
	}
	return err
}
