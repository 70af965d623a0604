package loop

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// changesTime bounds the look at what a thread has changed in its workspace.
const changesTime = 2 * time.Minute

// pathVariable is the value of {env:PROJECT_PATH}: where the thread works.
const pathVariable = "PROJECT_PATH"

// Sharing is what several machines have to know of threads that work in the workspace of
// another one.
type Sharing interface {
	// Now is the workspace of such a thread as it stands.
	Now(ctx context.Context, meta thread.Meta) thread.Workspace
	// Begun records that the thread works in it, on the machine that w names. The error says
	// that another one has it by now.
	Begun(ctx context.Context, w thread.Workspace) error
	// Left sends what is in it, unless the thread that has it will.
	Left(ctx context.Context, w thread.Workspace) error
}

// workplace is where a thread works: in the project, or in a workspace.
type workplace struct {
	in    *tool.Work // nil: the project
	leave func()
	clean bool // it is the thread's own, and nothing in it is left to apply
}

// enter makes the workspace of a thread, if it is to have one, or finds it.
func (w *workplace) enter(ctx context.Context, r *run) error {
	if r.meta.Workspace == nil || r.Recorded != nil { // a replay changes nothing
		return nil
	}
	if r.Workspaces == nil {
		return tool.Faultf(tool.CodeUnsupported, "the thread needs a workspace, and there are none here")
	}
	now, in, leave, err := w.enterOne(ctx, r)
	if err != nil {
		return err
	}
	w.in, w.leave = &in, leave
	r.Env = maps.Clone(r.Env)
	r.Env[pathVariable] = in.Root
	if now == *r.meta.Workspace {
		return nil
	}
	r.meta.Workspace = &now
	return r.records().Meta().Write(r.meta)
}

// shares reports whether the workspace is that of another thread, which may have run on
// another machine.
func shares(r *run) bool { return r.Sharing != nil && !r.meta.OwnWorkspace() }

// enterOne enters the workspace of the thread. That of another one is entered as it stands.
func (w *workplace) enterOne(ctx context.Context, r *run) (now thread.Workspace, in tool.Work, leave func(), err error) {
	now = *r.meta.Workspace
	if shares(r) {
		now = r.Sharing.Now(ctx, r.meta)
	}
	if now, in, leave, err = r.Workspaces.Enter(ctx, now); err != nil || !shares(r) {
		return now, in, leave, err
	}
	if err = r.Sharing.Begun(ctx, now); err != nil {
		leave()
	}
	return now, in, leave, err
}

// dir is the folder that stands for the project.
func (w *workplace) dir(project string) string {
	if w.in != nil {
		return w.in.Root
	}
	return project
}

// sum adds to the end of a thread what it has changed in a workspace of its own. One that
// is continued has not ended there.
func (w *workplace) sum(ctx context.Context, r *run, o *thread.Outcome) {
	if w.in == nil || o.State == thread.Continued || !r.meta.OwnWorkspace() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), changesTime)
	defer stop()
	changes, err := r.Workspaces.Changes(ctx, *r.meta.Workspace)
	if err != nil {
		o.Warnings = append(o.Warnings, fmt.Sprintf("what has changed in the workspace cannot be told: %v", err))
		return
	}
	o.Changes, w.clean = &changes, changes.Count() == 0
	if said := changes.IgnoredWarning(); said != "" {
		o.Warnings = append(o.Warnings, said)
	}
	if err := workspace.Send(ctx, r.Workspaces, r.records(), &r.meta); err != nil {
		o.Warnings = append(o.Warnings, fmt.Sprintf("other machines cannot have what has changed in the workspace: %v", err))
	}
}

// close leaves the workspace, which goes when there is nothing in it to apply.
func (w *workplace) close(ctx context.Context, r *run) {
	if w.leave == nil {
		return
	}
	w.leave()
	if shares(r) {
		if err := r.Sharing.Left(context.WithoutCancel(ctx), *r.meta.Workspace); err != nil {
			r.Log.Warn().Err(err).Msg("what has changed in the workspace of another thread could not be sent; the machine sends it later")
		}
	}
	if !w.clean {
		return
	}
	if _, err := r.Workspaces.Tidy(context.WithoutCancel(ctx), *r.meta.Workspace); err != nil {
		r.Log.Warn().Err(err).Msg("the workspace, in which nothing was changed, could not be removed")
	}
}
