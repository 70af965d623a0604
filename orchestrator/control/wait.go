package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Modes of a wait.
const (
	WaitAll = "all"
	WaitAny = "any"
)

// progressEvery is how often a waiting caller is told how things stand; the
// specification asks for once a second at least.
const progressEvery = time.Second

// WaitRequest asks to wait for threads.
type WaitRequest struct {
	ThreadIDs []thread.ID
	Mode      string        // all (default) or any
	Timeout   time.Duration // 0 looks once
	Progress  func(Progress)
	// Ask puts the open questions of the threads and those below them to the
	// person, each once; nil leaves them to others.
	Ask func(context.Context, thread.Question) (thread.Answer, error)
	// Parent is a thread that waits, and can answer: the wait is over when a child
	// of it asks, once for each question, and when somebody has an instruction for
	// the thread itself. It cannot wait for itself, nor for one
	// that waits for it.
	Parent thread.ID
	// Caller is who waits, outside threads: the wait is over when everything that is
	// pending waits for an answer, the first time in any case and later unless Patient
	// is set. Empty for those that wait until the end.
	Caller  string
	Patient bool // Timeout was asked for
}

// Progress is what a waiting caller is told every second.
type Progress struct {
	Done  int
	Total int
	Turns int
	// TurnLimit is how many turns the thread may take where one is waited for; 0: not
	// known, as when it was raised.
	TurnLimit int
	Spend     thread.Micros
	LastSay   string // last words of output of a thread that works
	Waiting   []view.Waiting
	// Suspended names the processes of threads that do nothing, see [view.View.Suspended].
	Suspended map[thread.ID]int
	NoWorker  map[thread.ID]string // why no worker takes them, see [view.View.NoWorker]
}

// Wait returns when all (or any) of the threads have ended, when the time is
// up, or with ctx's cause when ctx ends. It is woken by commits to the registry
// and by the death of a thread's process.
func (c *Controller) Wait(ctx context.Context, req WaitRequest) (view.WaitResult, error) {
	if req.Mode == "" {
		req.Mode = WaitAll
	}
	if req.Mode != WaitAll && req.Mode != WaitAny {
		return view.WaitResult{}, tool.Faultf(tool.CodeBadArguments, "mode %q is not known; valid are all and any", req.Mode)
	}
	if len(req.ThreadIDs) == 0 {
		return view.WaitResult{}, tool.Faultf(tool.CodeBadArguments, "thread_ids is empty; name at least one thread").
			WithHint("list_active shows what is running")
	}
	if err := c.Threads.NotUpwards(ctx, req.Parent, req.ThreadIDs); err != nil {
		return view.WaitResult{}, err
	}
	began := c.Threads.Now()
	known, unknown, err := c.Threads.Known(ctx, req.ThreadIDs)
	if err != nil {
		return view.WaitResult{}, threads.Fault(err)
	}
	req.ThreadIDs = known
	seen, err := c.await(ctx, req)
	if errors.Is(err, action.ErrCallAgain) {
		return view.WaitResult{}, err
	}
	if err != nil {
		return view.WaitResult{}, threads.Fault(err)
	}
	rows, waiting := seen.rows, seen.waiting
	answer := waitResult(req, rows, waiting, c.Threads.Now().Sub(began))
	if answer.NoWorker = c.View.NoWorker(ctx, rows); len(answer.NoWorker) > 0 && len(waiting) == 0 {
		answer.Next = view.NoWorkerNext(answer.NoWorker)
	}
	if answer.Suspended = c.View.Suspended(rows); len(answer.Suspended) > 0 && len(waiting) == 0 {
		answer.Next = view.SuspendedNext(answer.Suspended)
	}
	if steered, err := c.steered(ctx, req.Parent); err == nil && steered && len(answer.Pending) > 0 {
		answer.Next = interruptedNext + answer.Next
	}
	for _, id := range answer.Pending {
		if why := c.Fanout.Waits(ctx, rows[id]); why != "" {
			answer.Next = fmt.Sprintf("the items of %s wait: %s. %s", id, why, answer.Next)
		}
	}
	if err := c.View.AddChainCosts(ctx, answer.Results, rows); err != nil {
		return view.WaitResult{}, threads.Fault(err)
	}
	if len(unknown) > 0 {
		answer.Success = answer.Success && req.Mode == WaitAny
		maps.Copy(answer.Results, c.View.UnknownResults(ctx, unknown))
	}
	answer.States = view.StatesOf(answer.Results)
	return answer, nil
}

// WaitTime is how long a wait may take: as long as asked, else what a client
// bears and what the settings say for a thread; they bound both. A person at a
// terminal can end a wait, so that nothing else needs to.
func (c *Controller) WaitTime(by action.Caller, asked *float64) (time.Duration, error) {
	now := c.Settings.Begin()
	if by.Person {
		return waitLimit(now, by, asked)
	}
	set, _, err := now.Config.Coordination()
	if err != nil {
		return 0, threads.Fault(err)
	}
	timeout := set.WaitThreads.DefaultTimeout
	switch {
	case asked != nil:
		timeout = *asked
	case !by.InThread:
		timeout = clientWait(by, set.WaitThreads).Seconds()
	}
	return settings.Seconds(min(timeout, set.WaitThreads.MaxTimeout)), nil
}

// standing is how the threads of a wait were seen: their rows by asked id, and the open
// questions of theirs. The look that ends a wait is the one that its caller is told of: a
// question may be decided right after it.
type standing struct {
	rows    map[thread.ID]thread.Record
	waiting []view.Waiting
}

// await looks at the threads until the wait is over and returns how they were seen
// then. The thread that this process belongs to, if any, gives its slot away
// meanwhile.
func (c *Controller) await(ctx context.Context, req WaitRequest) (standing, error) {
	rows, over, err := c.lookOver(ctx, req)
	if over || err != nil || req.Timeout <= 0 {
		return c.asTheyStand(ctx, rows, err)
	}
	defer c.Queue.GiveSlot(ctx)()
	return c.awaitLooking(ctx, req)
}

// asTheyStand adds the open questions to the rows of a wait that is over.
func (c *Controller) asTheyStand(ctx context.Context, rows map[thread.ID]thread.Record, err error) (standing, error) {
	if err != nil {
		return standing{}, err
	}
	waiting, err := c.View.WaitingFor(ctx, rows)
	return standing{rows, waiting}, err
}

// awaitLooking looks again at every commit and death, and keeps the queue moving
// while one of the threads stands in it: nobody else need be there to do so.
func (c *Controller) awaitLooking(ctx context.Context, req WaitRequest) (standing, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes := c.Threads.Store.Milestones(watching)
	exits := c.Threads.NewExitWatcher(watching)
	deadline := time.NewTimer(req.Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()

	asking := c.newAsking(req)
	defer asking.end()

	mover := &mover{queue: c.Queue, lease: c.Queue.NewLease(), exits: exits}
	defer mover.lease.Release()

	stuck := &suspensions{Controller: c, request: req}
	timeUp, backstop := false, true
	for {
		rows, over, err := c.lookOver(ctx, req)
		if over || err != nil || timeUp {
			return c.asTheyStand(ctx, rows, err)
		}
		waiting, err := asking.look(watching, rows)
		now := standing{rows, waiting}
		if err != nil {
			return now, err
		}
		if calls, err := c.callsForCaller(ctx, req, now, asking); calls || err != nil {
			return now, err
		}
		working, err := c.withEntries(ctx, rows)
		if err != nil {
			return now, err
		}
		exits.Watch(working)
		mover.move(ctx, rows, backstop)
		backstop = true
		select {
		case <-changes:
			backstop = false
		case <-exits.Seen:
		case <-mover.pass:
			mover.pass, backstop = nil, false
		case <-tick.C:
			c.Queue.YieldAgain(ctx)
			timeUp = c.eachSecond(ctx, req, rows, waiting, stuck)
		case <-c.Queue.UntilRetry():
		case err := <-asking.failed:
			return now, err
		case <-asking.left:
		case <-deadline.C:
			timeUp = true
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
	}
}

// callsForCaller reports whether the caller of a wait has to do something before its threads
// have ended.
func (c *Controller) callsForCaller(ctx context.Context, req WaitRequest, now standing, asking *asking) (bool, error) {
	if told, err := c.tells(ctx, req.Parent, now.rows, now.waiting); told || err != nil {
		return told, err
	}
	if steered, err := c.steered(ctx, req.Parent); steered || err != nil {
		return steered, err
	}
	return c.onlyAsks(ctx, req, now.rows, now.waiting, asking)
}

// mover moves the queue beside a wait, whose deadline and progress do not depend on how long
// that takes.
type mover struct {
	queue *scheduler.Scheduler
	lease *scheduler.Lease
	exits *threads.ExitWatcher
	pass  <-chan struct{} // of the look at the queue that goes on; nil: none does
}

// move starts what is next, while one of the threads stands in the queue. The process
// that frees a slot does it, too; this is for slots that none freed. At every commit it would keep a
// hundred waiting threads busy with each other.
func (m *mover) move(ctx context.Context, rows map[thread.ID]thread.Record, backstop bool) {
	switch queued := slices.ContainsFunc(slices.Collect(maps.Values(rows)), mayStand); {
	case !queued:
		m.lease.Release()
	case backstop && m.pass == nil && m.lease.Turn():
		m.pass = m.queue.DispatchBeside(ctx, m.lease.Held(), m.exits)
	}
}

// mayStand reports whether a thread stands in the queue, or an entry of it or another
// attempt of it may.
func mayStand(rec thread.Record) bool {
	return rec.Queued() || rec.AwaitsRetry() || rec.Kind == thread.KindSet && rec.Status == thread.Running
}

// addSet counts the items of a set in its place.
func (c *Controller) addSet(ctx context.Context, p *Progress, rec thread.Record) {
	set, err := c.Threads.Store.Set(ctx, rec.ThreadID)
	if err != nil || set.Items == 0 { // it has none yet
		return
	}
	p.Total += set.Items - 1
	p.Done += set.Items
	if !rec.Status.Terminal() {
		p.Done -= set.Waiting + set.Working + set.Retrying
	}
	if budget, err := c.Threads.Store.Budget(ctx, rec.ThreadID); err == nil {
		p.Spend += budget.Actual
	}
}

// lookOver looks at the threads once, and tells whether the wait for them is
// over.
func (c *Controller) lookOver(ctx context.Context, req WaitRequest) (map[thread.ID]thread.Record, bool, error) {
	rows, _, err := c.Threads.LookAll(ctx, req.ThreadIDs)
	if cause := context.Cause(ctx); cause != nil {
		return nil, false, cause
	}
	if err != nil {
		return nil, false, err
	}
	return rows, waitIsOver(req.Mode, rows), nil
}

func waitIsOver(mode string, rows map[thread.ID]thread.Record) bool {
	for _, rec := range rows {
		over := rec.Outcome != nil && !rec.AwaitsRetry() // ended, or dead and not to be settled
		if over == (mode == WaitAny) {
			return mode == WaitAny
		}
	}
	return mode == WaitAll
}

func waitResult(
	req WaitRequest, rows map[thread.ID]thread.Record, waiting []view.Waiting, elapsed time.Duration,
) view.WaitResult {
	r := view.WaitResult{
		Mode: req.Mode, Results: map[thread.ID]view.Result{}, Pending: []thread.ID{}, Waiting: waiting,
		ElapsedSeconds: max(0, elapsed.Seconds()),
	}
	completed := 0
	for _, id := range req.ThreadIDs {
		if _, twice := r.Results[id]; twice {
			continue
		}
		rec := rows[id]
		r.Results[id] = view.ResultOf(id, rec)
		if !rec.Over() {
			r.Pending = append(r.Pending, id)
		}
		if rec.Status == thread.Completed {
			completed++
		}
	}
	r.Success = completed == len(rows) || (req.Mode == WaitAny && completed > 0)
	if len(r.Pending) > 0 {
		r.Next = fmt.Sprintf("%d still working: call wait_threads again for the pending ids, or get_status to look", len(r.Pending))
	}
	if len(r.Pending) == 1 && r.Results[r.Pending[0]].Retry != nil {
		r.Next = view.RetryNext(r.Results[r.Pending[0]].Retry)
	}
	if len(waiting) > 0 {
		r.Next = view.WaitingNext(waiting)
	}
	return r
}

func (c *Controller) progress(ctx context.Context, rows map[thread.ID]thread.Record, waiting []view.Waiting) Progress {
	p := Progress{Total: len(rows), Waiting: waiting, Suspended: c.View.Suspended(rows), NoWorker: c.View.NoWorker(ctx, rows)}
	for _, rec := range rows {
		if rec.Kind == thread.KindSet {
			c.addSet(ctx, &p, rec)
			continue
		}
		p.Turns += rec.Cost.Turns
		p.Spend += rec.Cost.Spend
		if meta, err := c.Threads.Described(rec.ThreadID); err == nil && len(rows) == 1 && meta.Limits.Turns >= p.Turns {
			p.TurnLimit = meta.Limits.Turns
		}
		if rec.Over() {
			p.Done++
			continue
		}
		if last, err := c.Threads.LastWords(rec.ThreadID); err == nil && last.Text != "" {
			p.LastSay = last.Text
		}
	}
	return p
}
