package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Threads offers the controller to the primary actions; the operations are those of
// orchestrator/operation.
type Threads struct{ *Controller }

// Start starts a thread and, unless the request is asynchronous, waits for it.
func (t Threads) Start(ctx context.Context, caller action.Caller, r action.StartRequest) (any, error) {
	now := t.Settings.Begin()
	var limit time.Duration
	if !r.Async {
		var err error
		if limit, err = waitLimit(now, caller, r.WaitSeconds); err != nil {
			return nil, err
		}
	}
	started, err := t.start(ctx, now, caller, r, Outside{})
	if err != nil {
		return nil, threads.WithAway(err)
	}
	if caller.Started != nil {
		caller.Started(started.ThreadID, started.Directive)
	}
	if r.Async || started.Over() {
		return briefly(caller, started), nil
	}
	ended, err := t.follow(ctx, started, WaitRequest{
		ThreadIDs: []thread.ID{started.ThreadID}, Mode: WaitAll, Timeout: limit,
		Progress: action.Told[Progress](caller), Ask: caller.Ask, Parent: decides(caller),
		Caller: caller.By, Patient: r.WaitSeconds != nil,
	})
	if errors.Is(err, action.ErrCallAgain) && r.RequestKey == "" {
		// Made again, the call would start a second thread. It ends with the question
		// in its answer: wait_threads asks it.
		return t.goesOn(ctx, started)
	}
	return briefly(caller, ended), err
}

// briefly is an answer as its caller reads it.
func briefly(caller action.Caller, s view.Started) view.Started {
	if caller.Person {
		return s
	}
	return s.Brief()
}

// ClientWait is the longest wait of a client that names none and of which nothing is
// known: the time-outs of MCP clients begin at 60 seconds.
const ClientWait = 45 * time.Second

// waitLimit is how long a synchronous fork is waited for: as long as asked, else what a
// client bears, and for threads and people until the child's own limits end it.
func waitLimit(now *settings.Call, caller action.Caller, asked *float64) (time.Duration, error) {
	const forever = 365 * 24 * time.Hour
	switch {
	case asked != nil:
		return settings.Seconds(min(*asked, forever.Seconds())), nil
	case caller.InThread, caller.Person:
		return forever, nil
	}
	set, _, err := now.Config.Coordination()
	if err != nil {
		return 0, threads.Fault(err)
	}
	return clientWait(caller, set.WaitThreads), nil
}

// clientWait is how long a client waits that names no time: as its user says, else as
// the client is known to, else [ClientWait].
func clientWait(caller action.Caller, set config.WaitSettings) time.Duration {
	if seconds, ok := set.Client(caller.Origin.Client); ok {
		return settings.Seconds(seconds)
	}
	return cmp.Or(caller.Hold, ClientWait)
}

// Plan says what Start would do.
func (t Threads) Plan(ctx context.Context, caller action.Caller, r action.StartRequest) (any, error) {
	return t.Planner.Preview(ctx, caller, r)
}

// Runs tells which item a thread runs.
func (t Threads) Runs(ctx context.Context, id thread.ID) (itemID string, err error) {
	rec, err := t.Threads.LookAsked(ctx, id)
	if err != nil {
		return "", threads.Fault(err)
	}
	return rec.Directive, nil
}

// decides is the thread that calls, if it can answer the questions of what it
// starts, and wait for that again.
func decides(caller action.Caller) thread.ID {
	required := permission.Required(permission.Execute, item.Tool, action.OrchestratorID)
	if !caller.InThread || caller.Hook != nil || caller.Allow == nil || caller.Allow(required) != nil {
		return ""
	}
	return caller.Env.ThreadID
}

// whoeverCalled has cancelled a thread that its call waited for.
const whoeverCalled = "whoever broke off the call that waited for it"

// follow waits for a thread that was started synchronously. When the call is
// cancelled the thread is too, because nobody will ask for it; when only the
// time is up, a message interrupts the call, or this process shuts down, it goes on.
func (t Threads) follow(ctx context.Context, s view.Started, req WaitRequest) (view.Started, error) {
	_, err := t.await(ctx, req)
	if errors.Is(context.Cause(ctx), thread.ErrInterrupted) {
		ctx, err = context.WithoutCancel(ctx), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, thread.ErrShutdown) {
			return s, tool.Faultf(tool.CodeCancelled, "%w; thread %s goes on", cause, s.ThreadID).
				With("thread_id", s.ThreadID).WithHint("wait_threads with this thread_id when a server is there again")
		}
		_, stopErr := t.Stop.By(whoeverCalled).Cancel(context.WithoutCancel(ctx), s.ThreadID)
		return s, errors.Join(cause, stopErr)
	}
	if errors.Is(err, action.ErrCallAgain) {
		return s, err
	}
	if err != nil {
		return s, threads.GoesOnFault(s.ThreadID, err)
	}
	now, err := t.goesOn(ctx, s)
	if steered, unknown := t.steered(ctx, req.Parent); unknown == nil && steered && !now.Over() {
		now.Next = interruptedNext + now.Next
	}
	return now, err
}

// goesOn is the answer about a thread that was waited for, as it is now.
func (t Threads) goesOn(ctx context.Context, s view.Started) (view.Started, error) {
	now, err := t.asItGoesOn(ctx, s)
	if err != nil {
		return s, threads.GoesOnFault(s.ThreadID, err)
	}
	return now, nil
}

func (t Threads) asItGoesOn(ctx context.Context, s view.Started) (view.Started, error) {
	rows, _, err := t.Threads.LookAll(ctx, []thread.ID{s.ThreadID})
	if err != nil {
		return s, threads.Fault(err)
	}
	now, err := t.View.Started(ctx, s.ThreadID, s.Existing)
	if err != nil || now.Over() || now.Retry != nil {
		return now, err
	}
	now.Next = "the thread goes on: wait_threads with this thread_id to wait further, or get_status to look"
	if why := t.View.NoWorker(ctx, rows); len(why) > 0 {
		now.Next = view.NoWorkerNext(why)
	}
	if stuck := t.View.Suspended(rows); len(stuck) > 0 {
		now.Next = view.SuspendedNext(stuck)
	}
	if now.Waiting, err = t.View.WaitingFor(ctx, rows); err != nil {
		return now, threads.Fault(err)
	}
	if len(now.Waiting) > 0 {
		now.Next = view.WaitingNext(now.Waiting)
	}
	return now, nil
}

// StartTool runs a tool in a process of its own and does not wait for it.
func (t Threads) StartTool(ctx context.Context, caller action.Caller, r action.ToolRequest) (any, error) {
	key, err := t.requestKey(ctx, caller, r.RequestKey)
	if err != nil {
		return nil, threads.Fault(err)
	}
	params, err := r.Parameters.Map()
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "parameters: %w", err)
	}
	n := store.NewThread{
		ID: thread.ID(uuid.NewString()), Kind: thread.KindTool, Directive: r.ToolID, Name: r.ToolID, RequestKey: key, Now: t.Threads.Now(),
		Origin: caller.Origin,
	}
	if key != "" {
		n.RequestHash = keyedCall{Inputs: maps.Clone(params)}.hash()
	}
	if rec, err := t.startedBefore(ctx, n); err != nil {
		return nil, threads.Fault(err)
	} else if rec != nil {
		return t.View.Started(ctx, rec.ThreadID, true)
	}
	meta := thread.Meta{
		Kind: thread.KindTool, Directive: r.ToolID, Inputs: params, TraceID: caller.Env.TraceID,
		Capabilities: []string{permission.Required(permission.Execute, item.Tool, r.ToolID)},
	}
	now := t.Settings.Begin()
	if err := t.boundToolRun(ctx, now, caller, &n, &meta); err != nil {
		return nil, threads.Fault(err)
	}
	meta.Warnings = append(slices.Clip(r.Warnings), meta.Warnings...)
	s, err := t.Queue.In(now).Launch(ctx, n, nil, func(ctx context.Context, rec thread.Record) (thread.Meta, error) {
		meta.ThreadID, meta.ParentID, meta.Status, meta.ChainRootID = rec.ThreadID, rec.ParentID, rec.Status, rec.ThreadID
		meta.CreatedAt, meta.UpdatedAt = rec.CreatedAt, rec.UpdatedAt
		return meta, t.openToolBudget(ctx, rec, meta.Limits.Spend, n.ParentEnded)
	})
	if err == nil && caller.Started != nil {
		caller.Started(s.ThreadID, s.Directive)
	}
	return s, err
}

// boundToolRun gives a tool run its parent and its time limit.
func (c *Controller) boundToolRun(
	ctx context.Context, now *settings.Call, caller action.Caller, n *store.NewThread, meta *thread.Meta,
) error {
	p, err := c.Planner.In(now).ToolRun(ctx, caller)
	if err != nil {
		return err
	}
	meta.Limits, meta.Warnings, meta.Firing = p.Limits, p.Warnings, p.Firing()
	n.ParentID, n.ParentEnded = p.Request.Parent, p.Late()
	if p.Parent != nil {
		n.MaxSpawns, n.Origin = p.Parent.Limits.Spawns, thread.Origin{}
		meta.Ceiling = append([][]string{p.Parent.Own()}, p.Parent.Ceiling...)
		meta.Workspace = p.Parent.Workspace
	}
	return nil
}

// openToolBudget gives a tool run a budget, out of which directives that its
// process starts reserve theirs. Below a thread it holds nothing: the tool asks
// no model, and money set aside for it would be missing elsewhere.
func (t Threads) openToolBudget(ctx context.Context, rec thread.Record, spend thread.Micros, late bool) error {
	if rec.ParentID == "" {
		return t.Threads.Store.OpenRoot(ctx, rec.ThreadID, spend, t.Threads.Now())
	}
	if late {
		return t.Threads.Store.ReserveAfter(ctx, rec.ThreadID, rec.ParentID, 0, t.Threads.Now())
	}
	return t.Threads.Store.Reserve(ctx, rec.ThreadID, rec.ParentID, 0, t.Threads.Now())
}
