package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Threads offers the controller to the primary actions.
type Threads struct{ *Controller }

var _ action.Threads = Threads{}

// Start starts a thread and, unless the request is asynchronous, waits for it.
func (t Threads) Start(ctx context.Context, caller action.Caller, r action.StartRequest) (any, error) {
	started, err := t.Controller.Start(ctx, startRequest(caller, r))
	if err != nil {
		return nil, err
	}
	if caller.Started != nil {
		caller.Started(started.ThreadID, started.Directive)
	}
	if r.Async || started.Status.Terminal() {
		return started, nil
	}
	return t.follow(ctx, caller, started, waitLimit(caller, r.WaitSeconds))
}

// Plan says what Start would do.
func (t Threads) Plan(ctx context.Context, caller action.Caller, r action.StartRequest) (any, error) {
	return t.Controller.Plan(ctx, startRequest(caller, r))
}

// startRequest takes the parent from the runtime: inside a thread it is the
// thread itself, whatever a model says.
func startRequest(caller action.Caller, r action.StartRequest) StartRequest {
	req := StartRequest{
		Directive: r.Directive, Inputs: r.Inputs, Model: r.Model, LimitOverrides: map[string]any{},
		Parent: r.Parent, RequestKey: requestKey(caller, r.RequestKey), TraceID: caller.Env.TraceID,
	}
	for name, value := range r.LimitOverrides {
		req.LimitOverrides[name] = value
	}
	if caller.InThread {
		req.Parent = caller.Env.ThreadID
	}
	return req
}

// requestKey makes a key that a thread's model has chosen the thread's own, for
// two threads may well choose the same.
func requestKey(caller action.Caller, key string) string {
	if key == "" || !caller.InThread {
		return key
	}
	return string(caller.Env.ThreadID) + " " + key
}

// follow waits for a thread that was started synchronously. When the call is
// cancelled the thread is too, because nobody will ask for it; when only the
// time is up, or this process shuts down, it goes on.
func (t Threads) follow(
	ctx context.Context, caller action.Caller, s Started, limit time.Duration,
) (Started, error) {
	rows, err := t.await(ctx, WaitRequest{
		ThreadIDs: []thread.ID{s.ThreadID}, Mode: WaitAll, Timeout: limit, Progress: progressFor(caller),
	})
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, thread.ErrShutdown) {
			return s, tool.Faultf(tool.CodeCancelled, "%w; thread %s goes on", cause, s.ThreadID).
				With("thread_id", s.ThreadID).WithHint("wait_threads with this thread_id when a server is there again")
		}
		_, stopErr := t.Cancel(context.WithoutCancel(ctx), s.ThreadID)
		return s, errors.Join(cause, stopErr)
	}
	if err != nil {
		return s, fault(err)
	}
	now, err := t.started(ctx, rows[s.ThreadID], s.Existing)
	if err == nil && !now.Status.Terminal() {
		now.Next = "the thread goes on: wait_threads with this thread_id to wait further, or get_status to look"
	}
	return now, err
}

// StartTool runs a tool in a process of its own and does not wait for it.
func (t Threads) StartTool(ctx context.Context, caller action.Caller, r action.ToolRequest) (any, error) {
	n := store.NewThread{
		ID: thread.ID(uuid.NewString()), Kind: thread.KindTool, Directive: r.ToolID, Name: r.ToolID,
		RequestKey: requestKey(caller, r.RequestKey), Now: t.Now(),
	}
	if rec, err := t.startedBefore(ctx, n.Kind, n.Directive, n.RequestKey); err != nil {
		return nil, fault(err)
	} else if rec != nil {
		return t.started(ctx, *rec, true)
	}
	params, err := r.Parameters.Map()
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "parameters: %w", err)
	}
	meta := thread.Meta{
		Kind: thread.KindTool, Directive: r.ToolID, Inputs: params, TraceID: caller.Env.TraceID,
		Capabilities: []string{permission.Required(permission.Execute, item.Tool, r.ToolID)},
	}
	if err := t.boundToolRun(ctx, caller, &n, &meta); err != nil {
		return nil, fault(err)
	}
	meta.Warnings = append(slices.Clip(r.Warnings), meta.Warnings...)
	s, err := t.launch(ctx, n, func(ctx context.Context, rec thread.Record) (thread.Meta, error) {
		meta.ThreadID, meta.ParentID, meta.Status, meta.ChainRootID = rec.ThreadID, rec.ParentID, rec.Status, rec.ThreadID
		meta.CreatedAt, meta.UpdatedAt = rec.CreatedAt, rec.UpdatedAt
		return meta, t.openToolBudget(ctx, rec, meta.Limits.Spend)
	})
	if err == nil && caller.Started != nil {
		caller.Started(s.ThreadID, s.Directive)
	}
	return s, err
}

// boundToolRun gives a tool run its parent and its time limit.
func (t Threads) boundToolRun(
	ctx context.Context, caller action.Caller, n *store.NewThread, meta *thread.Meta,
) error {
	p := &plan{doc: &item.DirectiveDoc{}}
	if caller.InThread {
		p.request.Parent = caller.Env.ThreadID
	}
	if err := t.loadParent(ctx, p); err != nil {
		return err
	}
	if p.parent != nil {
		p.parent.Limits.Depth++ // a tool run is no level of its own: a thread that may start no children may run tools
	}
	if err := t.resolveLimits(p); err != nil {
		return err
	}
	meta.Limits, meta.Warnings = p.limits, p.warnings
	n.ParentID = p.request.Parent
	if p.parent != nil {
		n.MaxSpawns = p.parent.Limits.Spawns
		meta.Ceiling = append([][]string{p.parent.Capabilities}, p.parent.Ceiling...)
	}
	return nil
}

// openToolBudget gives a tool run a budget, out of which directives that its
// process starts reserve theirs. Below a thread it holds nothing: the tool asks
// no model, and money set aside for it would be missing elsewhere.
func (t Threads) openToolBudget(ctx context.Context, rec thread.Record, spend thread.Micros) error {
	if rec.ParentID == "" {
		return t.Store.OpenRoot(ctx, rec.ThreadID, spend, t.Now())
	}
	return t.Store.Reserve(ctx, rec.ThreadID, rec.ParentID, 0, t.Now())
}
