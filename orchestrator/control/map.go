package control

import (
	"context"
	"errors"
	"maps"

	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// MapRequest asks for a set of threads: for a new one, or for that of an id.
type MapRequest struct {
	fanout.Request
	Set         thread.ID // instead of a request: look at this one, and wait for it
	Async       bool      // answer as soon as the set is started
	WaitSeconds *float64  // longest wait; nil: the caller's default
	Cursor      string    // next_cursor of an answer before
}

// Map starts a directive for each item of a list, or finds the set that there is, and
// waits for it unless the request is asynchronous. The answer tells of the items that
// fit into it.
func (c *Controller) Map(ctx context.Context, caller action.Caller, r MapRequest) (fanout.Answer, error) {
	now := c.Settings.Begin()
	limit, err := waitLimit(now, caller, r.WaitSeconds)
	if err != nil {
		return fanout.Answer{}, err
	}
	opened := fanout.Opened{ID: r.Set, Existing: true}
	if r.Set == "" {
		opened, err = c.Fanout.Open(ctx, now, caller, r.Request)
	} else {
		err = c.mayLook(ctx, caller, r.Set)
	}
	if err != nil {
		return fanout.Answer{}, err
	}
	if caller.Started != nil && r.Set == "" {
		caller.Started(opened.ID, r.Directive)
	}
	if done := c.Queue.DispatchBeside(ctx, false, nil); r.Set == "" {
		<-done // entries that can be started are when the caller is told of the set
	}
	var seen standing
	if !r.Async && r.Cursor == "" {
		seen, err = c.await(ctx, WaitRequest{
			ThreadIDs: []thread.ID{opened.ID}, Mode: WaitAll, Timeout: limit, Progress: action.Told[Progress](caller), Ask: caller.Ask,
			Parent: decides(caller), Caller: caller.By, Patient: r.WaitSeconds != nil,
		})
		if err != nil {
			return fanout.Answer{}, c.leave(ctx, caller, opened, err)
		}
	}
	answer, err := c.Fanout.Answer(ctx, opened, fanout.Page{
		Cursor: r.Cursor, Room: caller.Room, Whole: caller.Person, Waiting: seen.waiting,
	})
	if err != nil {
		return fanout.Answer{}, threads.Fault(err)
	}
	return answer, nil
}

// mayLook refuses a set that is none, and a thread that looks at one that it has not
// started.
func (c *Controller) mayLook(ctx context.Context, caller action.Caller, set thread.ID) error {
	if caller.InThread {
		if err := c.Threads.IsBelow(ctx, set, caller.Env.ThreadID, "so it cannot be looked at from there"); err != nil {
			return err
		}
	}
	rec, err := c.Threads.LookAsked(ctx, set)
	if err != nil {
		return threads.Fault(err)
	}
	if rec.Kind != thread.KindSet {
		return fanout.NoSet(set)
	}
	return nil
}

// leave ends a wait for a set that was not over. A call that is cancelled cancels the set
// that it has started, as nobody will ask for it, but for a person at a terminal, who is
// told how; the same call again goes on where it stood.
func (c *Controller) leave(ctx context.Context, caller action.Caller, opened fanout.Opened, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, action.ErrCallAgain) || errors.Is(cause, thread.ErrShutdown) || opened.Existing || caller.Person {
		return threads.Fault(err)
	}
	_, stopErr := c.Stop.By(whoeverCalled).Cancel(context.WithoutCancel(ctx), opened.ID)
	return errors.Join(cause, stopErr)
}

// withEntries adds the entries of sets that work to the rows of threads that are waited
// for.
func (c *Controller) withEntries(ctx context.Context, rows map[thread.ID]thread.Record) (map[thread.ID]thread.Record, error) {
	all := rows
	for id, rec := range rows {
		if rec.Kind != thread.KindSet || rec.Status.Terminal() {
			continue
		}
		entries, _, err := c.Threads.Store.List(ctx, store.Filter{
			ParentID: rec.ThreadID, States: []thread.State{thread.Created, thread.Running}, Limit: store.MaxPage,
		})
		if err != nil {
			return nil, err
		}
		all = maps.Clone(all)
		all[id] = rec
		for _, entry := range entries {
			all[entry.ThreadID] = entry
		}
	}
	return all, nil
}
