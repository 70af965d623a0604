// Package changeset is what threads have changed in their workspaces: it is shown, and
// put into the project or into the workspace of the thread that asks.
package changeset

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Desk shows and applies changes.
type Desk struct{ Threads *threads.Threads }

// Request names the changes of one thread.
type Request struct {
	ThreadID thread.ID // any of its chain
	// From is the thread that asks, which may look at its own and at those of threads below
	// it, and applies them to where it works itself. Empty: the thread that this process runs
	// in or, where there is none, a person or client of the project.
	From thread.ID
	// Path and Offset say what is shown, and Room how much.
	Path   string
	Offset int
	Room   int
	// Protected says that a person has agreed to what only a person applies.
	Protected bool
}

// Shown is the answer to diff_thread.
type Shown struct {
	Success          bool      `json:"success"`
	ThreadID         thread.ID `json:"thread_id"`
	ResolvedThreadID thread.ID `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it"`
	// WorkspaceOf is whose workspace it is, where that is another thread.
	WorkspaceOf thread.ID `json:"workspace_of,omitempty" jsonschema:"the thread in whose workspace it works"`
	workspace.Diff
}

// Applied is the answer to apply_thread.
type Applied struct {
	Success          bool      `json:"success"`
	ThreadID         thread.ID `json:"thread_id"`
	ResolvedThreadID thread.ID `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it"`
	workspace.Applied
}

// Diff shows what a thread has changed.
func (d *Desk) Diff(ctx context.Context, r Request) (Shown, error) {
	rec, meta, err := d.find(ctx, r, "so it cannot see what that has changed")
	if err != nil {
		return Shown{}, err
	}
	diff, err := d.Threads.Workspaces.Diff(ctx, *meta.Workspace, workspace.DiffRequest{Path: r.Path, Offset: r.Offset, Room: r.Room})
	if nothing, ok := nothingLeft(rec, meta, err); ok {
		diff = workspace.Diff{Note: nothing.Error(), Applied: nothing.AppliedAt}
	} else if err != nil {
		return Shown{}, d.told(rec, err)
	}
	shown := Shown{Success: true, ThreadID: r.ThreadID, Diff: diff}
	if rec.ThreadID != r.ThreadID {
		shown.ResolvedThreadID = rec.ThreadID
	}
	if !meta.OwnWorkspace() {
		shown.WorkspaceOf = meta.Workspace.Of
	}
	return shown, nil
}

// Apply puts what a thread has changed where the one works that asks. The error of
// changes in conflict is a fault that lists them, and nothing has changed then.
func (d *Desk) Apply(ctx context.Context, r Request) (Applied, error) {
	rec, meta, err := d.find(ctx, r, "so it cannot apply what that has changed")
	if err != nil {
		return Applied{}, err
	}
	if !meta.OwnWorkspace() {
		return Applied{}, tool.Faultf(tool.CodeUnsupported, "thread %s works in the workspace of %s", rec.ThreadID, meta.Workspace.Of).
			With("workspace_of", meta.Workspace.Of).WithHint("apply_thread of %s applies what all in it have changed", meta.Workspace.Of)
	}
	into, err := d.into(r)
	if err != nil {
		return Applied{}, threads.Fault(err)
	}
	done, err := d.Threads.Workspaces.Apply(ctx, *meta.Workspace, workspace.ApplyRequest{Into: into, Person: r.Protected && into == nil})
	if nothing, ok := nothingLeft(rec, meta, err); ok {
		done = workspace.Applied{Note: nothing.Error(), Before: nothing.AppliedAt}
	} else if err != nil {
		return Applied{}, d.told(rec, err)
	}
	applied := Applied{Success: true, ThreadID: r.ThreadID, Applied: done}
	if into == nil {
		if err := d.recordApplied(ctx, rec, *meta.Workspace); err != nil {
			applied.Note = err.Error()
		}
	}
	if rec.ThreadID != r.ThreadID {
		applied.ResolvedThreadID = rec.ThreadID
	}
	if !rec.Status.Terminal() && applied.Note == "" {
		applied.Note = "the thread goes on: what it changes from now on is not applied"
	}
	return applied, nil
}

// asks is the thread that asks.
func (d *Desk) asks(r Request) thread.ID { return cmp.Or(r.From, d.Threads.Parent) }

// into is the workspace of the thread that asks; nil: the project.
func (d *Desk) into(r Request) (*thread.Workspace, error) {
	asks := d.asks(r)
	if asks == "" {
		return nil, nil //nolint:nilnil // it is the project
	}
	meta, err := d.Threads.OwnMeta(asks)
	return meta.Workspace, err
}

// find finds the thread, which must have a workspace, and be below the one that asks.
func (d *Desk) find(ctx context.Context, r Request, so string) (rec thread.Record, meta thread.Meta, err error) {
	if rec, err = d.Threads.LookAsked(ctx, r.ThreadID); err != nil {
		return rec, meta, threads.Fault(err)
	}
	if asks := d.asks(r); asks != "" && asks != rec.ThreadID {
		if err := d.Threads.IsBelow(ctx, rec.ThreadID, asks, so); err != nil {
			return rec, meta, err
		}
	}
	if meta, err = d.Threads.OwnMeta(rec.ThreadID); err != nil {
		return rec, meta, threads.Fault(err)
	}
	if meta.Workspace == nil || d.Threads.Workspaces == nil {
		return rec, meta, tool.Faultf(tool.CodeUnsupported, "thread %s has no workspace: it works in the project itself", rec.ThreadID).
			With("thread_id", rec.ThreadID).WithHint("What it changed is there already. A thread started with workspace \"worktree\" has one.")
	}
	now := d.Now(ctx, meta)
	meta.Workspace = &now
	err = d.Threads.Workspaces.Receive(ctx, now)
	if _, is := errors.AsType[*workspace.ElsewhereError](err); is && now.At != "" {
		return rec, meta, onWorker(rec, now)
	}
	if err != nil {
		err = threads.Fault(err)
	}
	return rec, meta, err
}

// told says what a caller can do about an error.
func (d *Desk) told(rec thread.Record, err error) error {
	if conflict, ok := errors.AsType[*workspace.ConflictError](err); ok {
		return conflicting(rec.ThreadID, conflict)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return threads.Fault(err)
	}
	if rec.Worker != "" {
		return onWorker(rec, thread.Workspace{Of: rec.ThreadID, AtName: rec.Worker})
	}
	return tool.Faultf(tool.CodeNotFound, "thread %s has not made its workspace yet", rec.ThreadID).With("thread_id", rec.ThreadID).
		WithHint("wait_threads waits for it")
}

// onWorker says where the workspace of a thread is that is not here.
func onWorker(rec thread.Record, w thread.Workspace) error {
	f := tool.Faultf(tool.CodeNotFound, "the workspace of thread %s is on worker %s, and what has changed in it has not come here", w.Of, w.AtName).
		With("thread_id", rec.ThreadID).With("worker", w.AtName)
	if !rec.Status.Terminal() {
		return f.WithHint("It comes with the end of the thread: wait_threads waits for it.")
	}
	return f.WithHint("It comes when that worker is at work again, or with the next end: resume_thread has the thread go on there. Or apply it in the checkout of that machine.").
		WithTry("rye-mcp threads diff %s, on the machine of worker %s", rec.ThreadID, w.AtName)
}

// nothingLeft reports whether an error says that a thread which has ended has no workspace:
// nothing in it was left to apply, or it was never made.
func nothingLeft(rec thread.Record, meta thread.Meta, err error) (*workspace.GoneError, bool) {
	if !errors.Is(err, fs.ErrNotExist) || !rec.Status.Terminal() {
		return nil, false
	}
	if gone, ok := errors.AsType[*workspace.GoneError](err); ok {
		return gone, true
	}
	if rec.Worker != "" && (rec.Outcome == nil || rec.Outcome.Changes == nil || rec.Outcome.Changes.Count() > 0) {
		return nil, false // it is on another machine, as it was when the thread died
	}
	// A workspace is made before the first words; copies and successors have those of others.
	notBegun := meta.ForkedFrom == nil && rec.ContinuationOf == ""
	return &workspace.GoneError{NotMade: meta.Workspace.Baseline == "", NotBegun: notBegun}, true
}

// maxConflicts bounds the conflicts that one answer names.
const maxConflicts = 30

func conflicting(id thread.ID, e *workspace.ConflictError) error {
	f := tool.Faultf(tool.CodeConflict, "%w", e).With("thread_id", id).With("conflicts", e.Conflicts[:min(len(e.Conflicts), maxConflicts)])
	if more := len(e.Conflicts) - maxConflicts; more > 0 {
		f = f.With("more_conflicts", more)
	}
	if e.PersonOnly() {
		f.Code = tool.CodeProtected
		return f.WithHint("Nothing was applied: a person must agree to these files. Tell the person.").WithTry("rye-mcp threads apply %s", id)
	}
	return f.WithHint("Nothing was applied. resume_thread with the conflicts lets the thread solve them, or change the files here and apply again.")
}
