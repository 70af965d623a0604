package changeset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
)

// Remove removes the workspace of a thread that is deleted, with all that has changed in
// it. One that a thread has from another stays that one's.
func (d *Desk) Remove(ctx context.Context, rec thread.Record) error {
	w := d.own(rec)
	if w == nil {
		return nil
	}
	return d.Threads.Workspaces.Remove(ctx, *w)
}

// Unapplied says what speaks against deleting a thread; empty: nothing.
func (d *Desk) Unapplied(ctx context.Context, rec thread.Record) string {
	w := d.own(rec)
	if w == nil {
		return ""
	}
	err := d.Threads.Workspaces.Receive(ctx, *w)
	var changes thread.Changes
	if err == nil {
		changes, err = d.Threads.Workspaces.Changes(ctx, *w)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("what has changed in it cannot be told (%v)", err)
	case changes.Count() > 0:
		return fmt.Sprintf("%d changed files in it were not applied (diff_thread shows them, apply_thread applies them)", changes.Count())
	}
	return ""
}

// own is the workspace that a thread has for itself; nil: it has none. Where nothing vouches
// for what is known of the thread, nothing is removed for it.
func (d *Desk) own(rec thread.Record) *thread.Workspace {
	meta, err := d.Threads.OwnMeta(rec.ThreadID)
	if err != nil || d.Threads.Workspaces == nil || !meta.OwnWorkspace() {
		return nil
	}
	return meta.Workspace
}

// Sweep removes workspaces of this machine that nobody works in, where nothing has changed or
// the changes are known elsewhere and of no use any more. It sends what could not be sent before,
// and goes on with what a crash has cut short.
func (d *Desk) Sweep(ctx context.Context) (did string, err error) {
	if d.Threads.Workspaces == nil {
		return "", nil
	}
	removed, err := d.Threads.Workspaces.Sweep(ctx, func(h workspace.Held) (workspace.Fate, error) { return d.fate(ctx, h) })
	if removed > 0 {
		did = fmt.Sprintf("removed %d without changes of their own", removed)
	}
	return did, err
}

// fate is what becomes of a workspace on this machine. One whose thread is nowhere known stays:
// the store may be another than it was.
func (d *Desk) fate(ctx context.Context, h workspace.Held) (workspace.Fate, error) {
	w := h.Workspace
	if d.Threads.Fleet == nil || w.Of == "" {
		return workspace.Keep, nil
	}
	owner, now, err := d.Threads.WorkspaceNow(ctx, w.Of, w.Name)
	switch {
	case err != nil:
		return workspace.Keep, err
	case owner.ThreadID == "":
		return d.fateOfUnknown(ctx, w.Of)
	case !owner.Status.Terminal():
		return workspace.Keep, nil
	case now == nil: // the thread went on in another, after all of this one was applied
		return workspace.Repeats, nil
	}
	if now.At == h.Machine && now.At != "" {
		return workspace.Keep, d.sendLeft(ctx, owner.ThreadID, w.Name)
	}
	if now.Applied != "" && now.Applied == h.Result || now.Result != "" && now.Result != h.Result {
		return workspace.Repeats, nil
	}
	return workspace.Keep, nil
}

// fateOfUnknown is what becomes of the workspace of a thread that has no row.
func (d *Desk) fateOfUnknown(ctx context.Context, of thread.ID) (workspace.Fate, error) {
	gone, err := d.Threads.Store.Deletions(ctx, store.DeletionFilter{IDs: []thread.ID{of}})
	if err != nil || len(gone) == 0 {
		return workspace.Keep, err
	}
	return workspace.Discard, nil
}
