package control

import (
	"cmp"
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// Start registers a thread and starts its process, or puts it in the queue when as
// many run as may. All or nothing: a mistake that a caller can have made is refused
// before anything is written, and a later failure leaves the thread in state
// error with its reservation released.
//
// A RequestKey that names a thread already returns that thread, however its
// start went and whatever has become of its directive or parent since. A key that
// names another call is refused.
func (c *Controller) Start(ctx context.Context, caller action.Caller, req action.StartRequest) (view.Started, error) {
	return c.start(ctx, c.Settings.Begin(), caller, req, Outside{})
}

// Outside is what a thread begins with of a conversation that was held elsewhere.
type Outside struct {
	Text       string // behind the task in the first message; quoted, and bounded
	MirroredAs string // id of the mirror's thread that is to be the copy of this one
}

// StartFrom is [Controller.Start] of a thread that begins with what was said elsewhere.
func (c *Controller) StartFrom(ctx context.Context, caller action.Caller, req action.StartRequest, from Outside) (view.Started, error) {
	return c.start(ctx, c.Settings.Begin(), caller, req, from)
}

// start is [Controller.Start] by one version of the settings.
func (c *Controller) start(ctx context.Context, now *settings.Call, caller action.Caller, req action.StartRequest, from Outside) (view.Started, error) {
	key, err := c.requestKey(ctx, caller, req.RequestKey)
	if err != nil {
		return view.Started{}, threads.Fault(err)
	}
	req.RequestKey = key
	named := store.NewThread{
		Kind: thread.KindDirective, Directive: req.Directive, RequestKey: req.RequestKey, RequestHash: c.callHash(req),
	}
	if rec, err := c.startedBefore(ctx, named); err != nil {
		return view.Started{}, threads.Fault(err)
	} else if rec != nil {
		return c.View.Started(ctx, rec.ThreadID, true)
	}
	labels, err := labelsOf(req)
	if err == nil && from.MirroredAs != "" {
		labels.Metadata, err = thread.WithMirror(labels.Metadata, from.MirroredAs)
	}
	if err != nil {
		return view.Started{}, threads.Fault(err)
	}
	p, err := c.Planner.In(now).Start(ctx, caller, req)
	if err == nil {
		err = c.Planner.In(now).ConfirmRisk(ctx, p)
	}
	if err == nil {
		err = c.Queue.In(now).CheckSlot(ctx, p.Secrets)
	}
	if err == nil {
		err = c.Planner.In(now).HaveKey(ctx, p)
	}
	if err == nil {
		err = c.Planner.In(now).TakeItems(ctx, p)
	}
	if err != nil {
		return view.Started{}, err
	}
	n := store.NewThread{
		Kind: thread.KindDirective, Directive: p.Found.ID, Name: cmp.Or(labels.Name, p.Name(c.Planner.Env)), Metadata: labels.Metadata, ParentID: p.Request.Parent,
		Model: p.Choice.Ref(), RequestKey: named.RequestKey, RequestHash: named.RequestHash, Now: c.Threads.Now(), ParentEnded: p.Late(),
		Origin: caller.Origin,
	}
	if p.Parent != nil {
		n.MaxSpawns, n.Origin = p.Parent.Limits.Spawns, thread.Origin{}
	}
	return c.Queue.In(now).Launch(ctx, n, p.Secrets, func(ctx context.Context, rec thread.Record) (thread.Meta, error) {
		err := c.Queue.In(now).Reserve(ctx, p, rec.ThreadID)
		meta := p.Meta(rec)
		meta.BeginsWith = from.Text
		return meta, err
	})
}

// labelsOf checks what the caller of a start has named and noted.
func labelsOf(req action.StartRequest) (l store.LabelChange, err error) {
	if req.Name != "" {
		if l.Name, err = thread.ParseName(req.Name); err != nil {
			return l, err
		}
	}
	l.Metadata, err = thread.PatchMetadata(nil, req.Metadata)
	return l, err
}
