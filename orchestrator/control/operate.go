package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// operation is one orchestrator operation, with its parameters decoded from
// JSON.
type operation struct {
	name string
	run  func(ctx context.Context, c *Controller, caller action.Caller, params tool.Object) (any, error)
}

// operations are the operations of rye/agent/threads/orchestrator; the MCP
// tools of the same names take the same inputs.
var operations = sync.OnceValue(func() []operation {
	return []operation{
		op("wait_threads", (*Controller).opWait),
		op("get_status", func(c *Controller, ctx context.Context, _ action.Caller, in ThreadInput) (any, error) {
			return c.Status(ctx, in.ThreadID)
		}),
		op("get_budget", func(c *Controller, ctx context.Context, _ action.Caller, in BudgetInput) (any, error) {
			return c.GetBudget(ctx, in)
		}),
		op("list_active", func(c *Controller, ctx context.Context, _ action.Caller, in ListActiveInput) (any, error) {
			return c.ListActive(ctx, ListRequest{Parent: in.ParentID, Limit: in.Limit, Cursor: in.Cursor})
		}),
		op("list_threads", func(c *Controller, ctx context.Context, _ action.Caller, in ListInput) (any, error) {
			return c.List(ctx, in.Request())
		}),
		op("aggregate_results", func(c *Controller, ctx context.Context, _ action.Caller, in AggregateInput) (any, error) {
			return c.Aggregate(ctx, in.ThreadIDs)
		}),
		op("read_transcript", func(c *Controller, ctx context.Context, _ action.Caller, in TranscriptInput) (any, error) {
			return c.ReadTranscript(ctx, in)
		}),
		op("cancel_thread", func(c *Controller, ctx context.Context, caller action.Caller, in ThreadInput) (any, error) {
			if err := c.ownsBelow(ctx, caller, in.ThreadID); err != nil {
				return nil, err
			}
			return c.Cancel(ctx, in.ThreadID)
		}),
		op("kill_thread", func(c *Controller, ctx context.Context, caller action.Caller, in ThreadInput) (any, error) {
			if err := c.ownsBelow(ctx, caller, in.ThreadID); err != nil {
				return nil, err
			}
			return c.Kill(ctx, in.ThreadID)
		}),
		op("approve_thread", (*Controller).opApprove),
		op("resume_thread", (*Controller).opResume),
		op("get_chain", func(c *Controller, ctx context.Context, _ action.Caller, in ThreadInput) (any, error) {
			return c.GetChain(ctx, in.ThreadID)
		}),
		op("chain_search", func(c *Controller, ctx context.Context, _ action.Caller, in ChainSearchInput) (any, error) {
			return c.ChainSearch(ctx, in)
		}),
		op("thread_health", func(c *Controller, ctx context.Context, caller action.Caller, in HealthRequest) (any, error) {
			return c.Health(ctx, in, lookedFor(caller))
		}),
		op("reconcile_threads", func(c *Controller, ctx context.Context, caller action.Caller, in ReconcileInput) (any, error) {
			return c.Reconcile(ctx, in, lookedFor(caller))
		}),
	}
})

// op makes an operation whose parameters are validated against the schema of
// In and decoded strictly.
func op[In any](name string, run func(*Controller, context.Context, action.Caller, In) (any, error)) operation {
	accept := tool.Accepter[In]()
	return operation{name: name, run: func(
		ctx context.Context, c *Controller, caller action.Caller, params tool.Object,
	) (any, error) {
		raw, err := accept(params.Raw())
		if err != nil {
			return nil, err
		}
		var in In
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			return nil, tool.Faultf(tool.CodeBadArguments, "parameters of %s: %w", name, err)
		}
		return run(c, ctx, caller, in)
	}}
}

// Operations lists the names Operate knows.
func (c *Controller) Operations() []string {
	var names []string
	for _, o := range operations() {
		names = append(names, o.name)
	}
	return names
}

// Operate runs an operation by name.
func (c *Controller) Operate(ctx context.Context, caller action.Caller, name string, params tool.Object) (any, error) {
	known := operations()
	at := slices.IndexFunc(known, func(o operation) bool { return o.name == name })
	if at < 0 {
		return nil, tool.Faultf(tool.CodeBadArguments, "operation %q is not known; valid are %s",
			name, strings.Join(c.Operations(), ", ")).With("valid_operations", c.Operations())
	}
	return known[at].run(ctx, c, caller, params)
}

// Request is the list these parameters ask for.
func (in ListInput) Request() ListRequest {
	return ListRequest{
		States: in.Status, Directive: in.Directive, Parent: in.ParentID, Text: in.Text,
		Limit: in.Limit, Cursor: in.Cursor,
	}
}

func (c *Controller) opWait(ctx context.Context, caller action.Caller, in WaitInput) (any, error) {
	if err := c.notUpwards(ctx, caller, in.ThreadIDs); err != nil {
		return nil, err
	}
	settings, _, err := c.Config.Read().Coordination()
	if err != nil {
		return nil, fault(err)
	}
	timeout := settings.WaitThreads.DefaultTimeout
	if in.Timeout != nil {
		timeout = *in.Timeout
	}
	timeout = min(timeout, settings.WaitThreads.MaxTimeout)
	req := WaitRequest{
		ThreadIDs: in.ThreadIDs, Mode: in.Mode, Timeout: seconds(timeout), Progress: progressFor(caller), Ask: caller.Ask,
		Caller: caller.By, Patient: in.Timeout != nil,
	}
	if caller.InThread {
		req.Parent = caller.Env.ThreadID
	}
	return c.Wait(ctx, req)
}

func progressFor(caller action.Caller) func(Progress) {
	if caller.Progress == nil {
		return nil
	}
	return func(p Progress) { caller.Progress(p) }
}

func lookedFor(caller action.Caller) func(Looked) {
	if caller.Progress == nil {
		return nil
	}
	return func(l Looked) { caller.Progress(l) }
}

// notUpwards refuses a wait that could only end with its time: a thread's for
// itself, or for one that waits for it.
func (c *Controller) notUpwards(ctx context.Context, caller action.Caller, ids []thread.ID) error {
	if !caller.InThread {
		return nil
	}
	self := caller.Env.ThreadID
	for _, id := range ids {
		carrier, err := lineage.Resolve(id, c.getter(ctx))
		if errors.Is(err, thread.ErrNotFound) {
			continue // the wait says so
		}
		if err != nil {
			return fault(err)
		}
		above, err := lineage.IsBelow(self, carrier.ThreadID, c.getter(ctx))
		if err != nil {
			return fault(err)
		}
		if carrier.ThreadID == self || above {
			return tool.Faultf(tool.CodeUnsupported, "thread %s cannot wait for %s, which is itself or above it", self, id)
		}
	}
	return nil
}

// ownsBelow lets a thread stop its own descendants only.
func (c *Controller) ownsBelow(ctx context.Context, caller action.Caller, id thread.ID) error {
	if !caller.InThread {
		return nil
	}
	return c.isBelow(ctx, id, caller.Env.ThreadID, "so it cannot be stopped from there")
}

func (c *Controller) getter(ctx context.Context) lineage.Get {
	return func(id thread.ID) (thread.Record, error) { return c.Store.Get(ctx, id) }
}

// waitLimit is how long a synchronous fork is waited for: as long as asked,
// else 45 seconds for an MCP client, whose own time-outs begin at 60, and
// inside threads until the child's own limits end it.
func waitLimit(caller action.Caller, asked *float64) time.Duration {
	const (
		clientDefault = 45 * time.Second
		forever       = 365 * 24 * time.Hour
	)
	switch {
	case asked != nil:
		return seconds(min(*asked, forever.Seconds()))
	case caller.InThread:
		return forever
	default:
		return clientDefault
	}
}
