package scheduler

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Launch runs the sequence of a start, whatever the kind of thread: the
// life and then registry row, then prepare (budget, and what thread.json
// will say), thread.json, the place in the queue, the process, which alone is handed
// the secrets. This process lets go
// of the lock as soon as the new one has inherited it, so that a process that
// dies at once is found dead; or when the thread is queued, or the start has
// failed and the thread is settled.
func (c *Call) Launch(
	ctx context.Context, n store.NewThread, secrets map[string]string,
	prepare func(context.Context, thread.Record) (thread.Meta, error),
) (view.Started, error) {
	rec, hold, err := c.Register(ctx, n)
	if err != nil {
		return view.Started{}, threads.Fault(err)
	}
	if hold == nil {
		return c.View.Started(ctx, rec.ThreadID, true)
	}
	defer func() { _ = hold.Release() }()
	c.Threads.Crashpoints.At(CrashRegistered)
	// From here on the thread exists: the caller going away must not leave it
	// half made.
	ctx = context.WithoutCancel(ctx)
	rec, meta, err := c.makeReady(ctx, rec, prepare, len(secrets) > 0)
	if err != nil {
		return view.Started{}, c.Abandon(ctx, rec, err)
	}
	if rec.AdmittedAt.IsZero() && len(secrets) > 0 {
		return view.Started{}, c.Abandon(ctx, rec, c.noSlot(ctx))
	}
	if rec.AdmittedAt.IsZero() { // in the queue, or asked to stop meanwhile
		_ = hold.Release()
		c.DispatchAndLog(ctx, false, nil)
		return c.started(ctx, rec.ThreadID)
	}
	runs, err := c.LaunchProcess(ctx, rec, hold, Given{Secrets: secrets, Items: meta.Snapshot})
	if err != nil {
		told := c.Abandon(ctx, rec, err)
		c.DispatchAndLog(ctx, false, nil) // its slot is free again
		return view.Started{}, told
	}
	_ = hold.Release()                              // the process has it
	if runs.PID == 0 || runs.ContinuationOf != "" { // it has ended, or has a chain behind it
		return c.started(ctx, rec.ThreadID)
	}
	return c.View.Launched(runs, meta.Warnings), nil
}

// started is the answer about a thread that is there now, whether or not it can be looked at.
func (c *Call) started(ctx context.Context, id thread.ID) (view.Started, error) {
	s, err := c.View.Started(ctx, id, false)
	if err != nil {
		return view.Started{ThreadID: id}, threads.GoesOnFault(id, err)
	}
	return s, nil
}

// makeReady prepares a registered thread and puts it in the queue. The row is
// returned with an error too, and the thread described on disk, so that the row
// can be made again when the registry is lost. The snapshot of its items is held before
// thread.json names it. Here: only this process can run it.
func (c *Call) makeReady(
	ctx context.Context, rec thread.Record, prepare func(context.Context, thread.Record) (thread.Meta, error), here bool,
) (_ thread.Record, meta thread.Meta, _ error) {
	meta, err := prepare(ctx, rec)
	if err == nil {
		err = c.Threads.HoldItems(ctx, meta)
	}
	if err == nil {
		err = c.Threads.SendWorkspace(ctx, rec, &meta)
	}
	if err != nil {
		return rec, meta, errors.Join(err, c.Threads.Records.By(rec.ThreadID, rec.Run).Meta().Write(meta))
	}
	c.Threads.Crashpoints.At(CrashPrepared)
	c.Threads.Log.Info().Str("thread_id", string(rec.ThreadID)).Str("trace_id", meta.TraceID).Str("directive", rec.Directive).
		Msg("thread registered")
	ready, err := c.enqueue(ctx, rec.Run, meta, here)
	if err != nil {
		return rec, meta, err
	}
	return ready, meta, nil
}

// Register registers a thread with a run of its own, whose life it takes before the row
// is there; hold is nil when a request key names a thread that there was.
func (c *Scheduler) Register(ctx context.Context, n store.NewThread) (rec thread.Record, hold life.Hold, err error) {
	var done func()
	n.Run, done = c.Threads.NewRun()
	defer done()
	var claimed claim
	rec, created, err := store.Register(ctx, c.Threads.Store, n, func(id thread.ID) (err error) {
		claimed.giveUp()
		claimed, err = c.claim(life.Key{Thread: id, Run: n.Run})
		return err
	})
	if err != nil || !created {
		claimed.giveUp()
		return rec, nil, err
	}
	return rec, claimed.hold, nil
}

// claim is what a thread has outside the registry before it is there: a place for
// its records, and its life.
type claim struct {
	place records.Thread
	hold  life.Hold // nil: nothing was claimed
}

// claim takes what belongs to a candidate id, of which nothing may be there yet. That a
// start which was given up has just taken its place away is no reason to fail.
func (c *Scheduler) claim(k life.Key) (_ claim, err error) {
	place := c.Threads.Records.Of(k.Thread)
	for range claimTries {
		if err = place.Prepare(); err != nil {
			return claim{}, err
		}
		if begun, err := place.Begun(); begun || err != nil {
			return claim{}, cmp.Or(err, store.ErrTaken)
		}
		var hold life.Hold
		if hold, err = c.Threads.Life.Claim(k); err == nil {
			c.Threads.Crashpoints.At(CrashClaimed)
			return claim{place, hold}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, life.ErrHeld) { // the process that takes it away holds it
			return claim{}, err
		}
	}
	return claim{}, err
}

// claimTries is how often a place, or a life in it, is made that somebody takes away.
const claimTries = 5

// giveUp lets go, and leaves nothing behind.
func (c claim) giveUp() {
	if c.hold != nil {
		_ = c.hold.Release()
		_, _ = c.place.RemoveLeftover() // else a sweep does it
	}
}

// Given is what the process of a thread gets of its own.
type Given struct {
	Secrets map[string]string
	Items   string // names the snapshot that it works by; empty: none
	Queued  bool   // it was in the queue, and may be anybody's
}

// LaunchProcess starts the process of a thread that has a slot. Once that runs
// the thread is the process's own: a pid that cannot be recorded is no failure of
// the start, since the process records it too when it claims its row. The row that is
// returned names the process where that could be recorded.
func (c *Call) LaunchProcess(ctx context.Context, rec thread.Record, hold life.Hold, given Given) (thread.Record, error) {
	id, handed := rec.ThreadID, c.Handed(ctx, rec.Model, given.Secrets)
	var err error
	if handed.Items, err = c.Threads.ReadyItems(ctx, given.Items, !given.Queued); err != nil {
		return rec, err
	}
	started, err := c.Launcher.Launch(spawn.Request{Thread: id, Run: rec.Run, Hold: hold, Handed: handed})
	if err != nil {
		return rec, err
	}
	c.Threads.Crashpoints.At(CrashLaunched)
	c.Threads.WatchChild(id, started)
	err = c.Threads.Store.Runner(id, rec.Run).SetProcess(ctx, started.Process())
	if err == nil {
		rec.Process = started.Process()
	} else if !errors.Is(err, thread.ErrSettled) { // settled: it was quick
		c.Threads.Log.Warn().Err(err).Str("thread_id", string(id)).Msg("could not record a thread's process")
	}
	c.Threads.Crashpoints.At(CrashRecorded)
	return rec, nil
}

// Abandon ends a thread whose start failed and returns the failure as the
// caller must hear it.
func (c *Scheduler) Abandon(ctx context.Context, rec thread.Record, cause error) error {
	told := threads.Fault(cause)
	outcome := thread.Outcome{State: thread.Error, Error: &thread.Problem{
		Code: string(told.Code), Message: told.Message, Doing: thread.DoingStarting,
	}}
	if left, _ := recovery.LeftBehind(ctx, c.Threads.Store, rec); left { // or nobody knows
		outcome = recovery.NotHandedOver(rec.ContinuationOf, told)
	} else if now, err := c.Threads.Store.Get(ctx, rec.ThreadID); err == nil && !now.CancelRequestedAt.IsZero() {
		// A cancel that came meanwhile, and may be why the start failed, counts as in
		// every other end.
		outcome.State, outcome.Error.Code = thread.Cancelled, string(tool.CodeCancelled)
	}
	if err := c.endUnstarted(ctx, rec, outcome); err != nil {
		c.Threads.Log.Error().Err(err).Str("thread_id", string(rec.ThreadID)).Msg("could not settle a thread that did not start")
	}
	return told
}

// endUnstarted ends a thread that has not run, so that nobody starts it who finds
// it with a slot. Where its files cannot be written the row says so alone, and the
// files do when it is completed; where even that fails it loses its thread.json,
// without which none runs.
func (c *Scheduler) endUnstarted(ctx context.Context, rec thread.Record, o thread.Outcome) error {
	id, by := rec.ThreadID, c.Threads.Store.Runner(rec.ThreadID, rec.Run)
	w, err := c.Threads.Finisher.OpenTranscript(id, rec.Run)
	if err == nil {
		defer func() { _ = w.Close() }()
		_, err = c.Threads.Finisher.Finish(ctx, by, w, o, thread.Cost{})
	}
	if err == nil {
		return nil
	}
	after, inRow := c.Threads.Finisher.FinishRow(ctx, by, o)
	if inRow == nil && after.Status.Terminal() {
		return err
	}
	return errors.Join(err, inRow, c.Threads.Records.By(id, rec.Run).Meta().Remove())
}
