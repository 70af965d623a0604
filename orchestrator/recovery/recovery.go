// Package recovery settles threads whose process is gone. A thread is dead when
// its row is not terminal, nobody has the life of its run, and it does not stand in
// line; that is true from the moment the process ends, however it ended, and
// cannot be confused by a reused process id. A thread of another machine, whose
// locks need not be seen here, is left alone for as long as it is heard of. One that
// is queued and has been asked to stop is dead too: nothing will ever start it.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
)

// Sweeper finds and settles dead threads of one project.
type Sweeper struct {
	Finisher *finish.Finisher
	Log      zerolog.Logger
	Life     life.Life
	// NewRun makes the run of a thread that is settled. Done is called when its life was claimed.
	NewRun func() (run thread.Run, done func())
	// StopChildren stops the live descendants of a thread that died, by the
	// policy of the project, and returns those it stopped; nil keeps them running.
	StopChildren func(ctx context.Context, id thread.ID) ([]thread.ID, error)
	// ExitOf tells how a process ended that this process had started, waiting for
	// the end until ctx ends; nil when nothing is known.
	ExitOf func(ctx context.Context, id thread.ID) (life.Exit, bool)
	// Workspaces are those of the threads; nil: there are none.
	Workspaces workspace.Workspaces
	// Crashpoints is told of each crash point of settling a dead thread.
	Crashpoints thread.Crashpoints
}

// RunOnce examines every thread that is not terminal. One that cannot be
// settled does not keep it from the others; the error joins all of those.
func (s *Sweeper) RunOnce(ctx context.Context) (*Report, error) {
	report := &Report{}
	defer s.log(report)
	var failed []error
	err := store.EachRow(ctx, s.Finisher.Store, []thread.State{thread.Created, thread.Running}, func(rec thread.Record) error {
		report.Looked++
		if _, err := s.examine(ctx, rec, report); err != nil && !thread.WasDeleted(err, rec.ThreadID) {
			failed = append(failed, err)
		}
		return nil
	})
	if err != nil {
		return report, errors.Join(append(failed, fmt.Errorf("list threads: %w", err))...)
	}
	return report, errors.Join(append(failed, s.completeRecent(ctx, report))...)
}

// log says in one line what was done, if anything was.
func (s *Sweeper) log(report *Report) {
	if !report.empty() {
		s.Log.Info().EmbedObject(report).Msg("settled what was dead")
	}
}

// Complete repeats the last steps of a thread that has ended by its row while
// its thread.json says otherwise, because a crash came between the two. It does
// nothing while somebody holds the lock, who is about to do it.
func (s *Sweeper) Complete(ctx context.Context, rec thread.Record) error {
	report := &Report{}
	defer s.log(report)
	return s.complete(ctx, rec, report)
}

func (s *Sweeper) complete(ctx context.Context, rec thread.Record, report *Report) error {
	meta, err := s.Finisher.Records.Of(rec.ThreadID).Meta().Read()
	if err != nil || meta.Status.Terminal() || rec.Outcome == nil {
		return nil // without a readable thread.json there is nothing to complete
	}
	rec, hold, ok, err := s.ClaimEnded(ctx, rec.ThreadID)
	if !ok {
		return err
	}
	defer func() { _ = hold.Release() }()
	w, err := s.Finisher.OpenTranscript(rec.ThreadID, rec.Run)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	_, err = s.Finisher.Finish(ctx, s.Finisher.Store.Runner(rec.ThreadID, rec.Run), w, *rec.Outcome, rec.Cost)
	if err == nil {
		report.Completed = append(report.Completed, rec.ThreadID)
	}
	return err
}

// ClaimEnded takes the life of a thread that has ended, to write its files: a deletion waits
// for that with the removal of these. The row is read while the life is held. It is not ok
// when somebody else has a life of the thread, the thread goes on, or there is none any more.
func (s *Sweeper) ClaimEnded(ctx context.Context, id thread.ID) (rec thread.Record, hold life.Hold, ok bool, err error) {
	if rec, err = s.Finisher.Store.Get(ctx, id); err != nil || !rec.Status.Terminal() {
		return rec, nil, false, s.leave(nil, id, err)
	}
	held, err := s.Life.Held(life.Key{Thread: id})
	if err != nil || held {
		return rec, nil, false, err
	}
	hold, claimed := s.Life.Claim(life.Of(rec))
	if errors.Is(claimed, life.ErrHeld) {
		return rec, nil, false, nil
	}
	if rec, err = s.Finisher.Store.Get(ctx, id); err != nil || !rec.Status.Terminal() {
		return rec, nil, false, s.leave(hold, id, err)
	}
	if claimed != nil {
		return rec, nil, false, fmt.Errorf("claim the life of %s: %w", id, claimed)
	}
	return rec, hold, true, nil
}

// leave lets go of a thread whose files are not written. Of one that was deleted, which err
// says, no folder is left that was made anew for its life; that is no error.
func (s *Sweeper) leave(hold life.Hold, id thread.ID, err error) error {
	if hold != nil {
		_ = hold.Release()
	}
	if !errors.Is(err, thread.ErrNotFound) {
		return err
	}
	_, _ = s.Finisher.Records.Of(id).RemoveLeftover() // else a sweep does it
	return nil
}

// completeRecent completes the threads that ended last: those whose process a
// crash of the machine can have stopped between two steps.
func (s *Sweeper) completeRecent(ctx context.Context, report *Report) error {
	rows, _, err := s.Finisher.Store.List(ctx, store.Filter{States: thread.EndStates(), Limit: store.DefaultPage})
	if err != nil {
		return fmt.Errorf("list ended threads: %w", err)
	}
	var failed []error
	for _, rec := range rows {
		if err := s.complete(ctx, rec, report); err != nil && !thread.WasDeleted(err, rec.ThreadID) {
			failed = append(failed, fmt.Errorf("complete %s: %w", rec.ThreadID, err))
		}
	}
	return errors.Join(failed...)
}

// Examine returns the row of a thread as it truly is: when its process is gone
// the thread is settled first.
func (s *Sweeper) Examine(ctx context.Context, rec thread.Record) (thread.Record, error) {
	report := &Report{}
	defer s.log(report)
	return s.examine(ctx, rec, report)
}

func (s *Sweeper) examine(ctx context.Context, rec thread.Record, report *Report) (thread.Record, error) {
	if rec.Status.Terminal() || waits(rec) {
		return rec, nil
	}
	if rec.Kind == thread.KindSet && rec.Status == thread.Running {
		if goesOn, err := s.goesOn(ctx, rec, report); goesOn || err != nil {
			return rec, err
		}
	}
	if awaitsHandoff(rec) {
		now, mayAct, err := s.afterPredecessor(ctx, rec, report)
		if err != nil || !mayAct {
			return now, err
		}
		rec = now
	}
	left := s.Finisher.Records.Of(rec.ThreadID)
	held, err := s.Life.Held(life.Of(rec))
	if err != nil {
		return rec, fmt.Errorf("look at the life of %s: %w", rec.ThreadID, err)
	}
	switch {
	case !held && s.worksElsewhere(rec, left):
		return rec, nil
	case !held:
		return s.settle(ctx, rec, left, report)
	case s.beingSettled(rec):
		return s.awaitSettler(ctx, rec.ThreadID)
	default:
		return rec, nil
	}
}

// waits tells that a thread is queued and will be started.
func waits(rec thread.Record) bool { return rec.Queued() && rec.CancelRequestedAt.IsZero() }

// openedSince tells that a set was opened since its row was read. Its life is free from
// then on, and it ends with its entries.
func openedSince(before, now thread.Record) bool {
	return now.Kind == thread.KindSet && before.Status == thread.Created && now.Status == thread.Running
}

// beingSettled tells that the lock is held by somebody who settles the thread
// and not by its process, which is gone or has been taken out of the row.
func (s *Sweeper) beingSettled(rec thread.Record) bool {
	if rec.PID == 0 {
		return rec.Status == thread.Running
	}
	return s.Life.Over(rec.Process)
}

// silence is how long nothing has to be heard of a thread that another machine
// runs before it counts as dead: a folder that is shared need not share its locks,
// so there a free lock says nothing.
const silence = time.Hour

// worksElsewhere tells that a thread whose lock looks free may be at work on
// another machine. That of a worker is not, whose lease has run out.
func (s *Sweeper) worksElsewhere(rec thread.Record, left records.Thread) bool {
	if rec.PID == 0 || rec.Worker != "" || s.Life.Reach(rec.Process) != life.Elsewhere {
		return false
	}
	heard := rec.UpdatedAt
	if now, err := left.Transcript().Stamp(); err == nil && now.Changed.After(heard) {
		heard = now.Changed
	}
	return s.Finisher.Now().Sub(heard) < silence
}

// Another process settles a thread within milliseconds, unless it has to stop
// children first; nobody who only looks waits for that. There is no event for
// a settler that dies itself, so the row is looked at in between.
const (
	settlerGrace = time.Second
	settlerPoll  = 10 * time.Millisecond
)

// awaitSettler returns the row as whoever settles the thread leaves it, or as
// it is when that takes longer than a moment.
func (s *Sweeper) awaitSettler(ctx context.Context, id thread.ID) (thread.Record, error) {
	over := time.NewTimer(settlerGrace)
	defer over.Stop()
	poll := time.NewTicker(settlerPoll)
	defer poll.Stop()
	for {
		rec, err := s.Finisher.Store.Get(ctx, id)
		if err != nil || rec.Status.Terminal() {
			return rec, err
		}
		select {
		case <-poll.C:
		case <-over.C:
			return rec, nil
		case <-ctx.Done():
			return rec, context.Cause(ctx)
		}
	}
}

// settle ends a thread that was found dead, by a run of its own. A second caller finds
// that the thread has that run, or is settled.
func (s *Sweeper) settle(ctx context.Context, dead thread.Record, left records.Thread, report *Report) (thread.Record, error) {
	id := dead.ThreadID
	run, done := s.NewRun()
	defer done()
	if err := left.Prepare(); err != nil {
		return thread.Record{}, fmt.Errorf("folder of %s: %w", id, err)
	}
	hold, err := s.Life.Claim(life.Key{Thread: id, Run: run})
	if err != nil {
		return thread.Record{}, fmt.Errorf("claim the life of %s: %w", id, err)
	}
	defer func() { _ = hold.Release() }()
	s.Crashpoints.At(crashLocked)

	rec, err := s.Finisher.Store.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		_ = s.leave(hold, id, err)
	}
	if err != nil || rec.Status.Terminal() || waits(rec) || openedSince(dead, rec) {
		return rec, err // the process that started it was about to let go of it
	}
	if rec, err = s.Finisher.Store.Replace(ctx, id, dead.Run, run); errors.Is(err, thread.ErrSettled) {
		_ = hold.Release() // a process that ends while it waits would leave its lock
		return s.taken(ctx, id)
	}
	if err != nil {
		return rec, err
	}
	s.Crashpoints.At(crashReplaced)
	by := s.Finisher.Store.Runner(id, rec.Run)
	w, err := s.Finisher.OpenTranscript(id, rec.Run)
	if err != nil {
		return rec, err
	}
	defer func() { _ = w.Close() }()
	if _, err := left.Meta().Read(); err == nil && neverRan(rec) && w.Decided() == nil {
		return s.giveBack(ctx, by, report)
	}
	after, err := s.bury(ctx, rec, left, by, w, report)
	if err == nil {
		s.closeQuestions(ctx, id)
		report.ended(rec, after)
		_ = hold.End()
	}
	return after, err
}

// taken is the row of a thread that got another run since it was found dead: of another
// settler, or of somebody who has started it.
func (s *Sweeper) taken(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := s.Finisher.Store.Get(ctx, id)
	if err != nil || rec.PID != 0 && !s.Life.Over(rec.Process) {
		return rec, err
	}
	return s.awaitSettler(ctx, id)
}

// neverRan tells that a thread has a slot and that its process was not started,
// as far as is recorded, because who was to do that is gone. That may have been
// any process of the project, so the thread must not suffer for it.
func neverRan(rec thread.Record) bool {
	return rec.Status == thread.Created && !rec.AdmittedAt.IsZero() && rec.PID == 0 && rec.CancelRequestedAt.IsZero()
}

// giveBack puts a thread that never ran in the queue again, in its old place.
func (s *Sweeper) giveBack(ctx context.Context, by store.Runner, report *Report) (thread.Record, error) {
	id, _ := by.Of()
	rec, err := by.Return(ctx)
	if errors.Is(err, thread.ErrSettled) { // asked to stop just now: the next look settles it
		return s.Finisher.Store.Get(ctx, id)
	}
	if err != nil {
		return rec, err
	}
	report.Returned = append(report.Returned, id)
	s.Crashpoints.At(crashReturned)
	return rec, nil
}

// bury ends a dead thread whose life the caller holds, by a run of its own. It can be run again after
// a crash at any step.
func (s *Sweeper) bury(
	ctx context.Context, rec thread.Record, left records.Thread, by store.Runner, w *transcript.Writer, report *Report,
) (thread.Record, error) {
	id := rec.ThreadID
	// The number of the dead process may be a stranger's by now, and the lock is
	// held again: a stop must not take the two for a process.
	gone := rec.Process
	gone.PID = 0
	if err := by.SetProcess(ctx, gone); err != nil {
		return rec, err
	}
	s.Crashpoints.At(crashDetached)
	outcome, cost, err := s.outcomeOf(ctx, rec, left)
	if err != nil {
		return rec, err
	}
	if rec.Status == thread.Running && rec.Kind != thread.KindSet { // before that nothing can have been started
		s.stopRemains(ctx, id, outcome, report)
		s.takeBackSummary(rec, outcome)
	}
	tidy := s.sumWorkspace(ctx, s.Finisher.Records.By(by.Of()), &outcome)
	s.Log.Debug().Str("thread_id", string(id)).Int("pid", rec.PID).Str("status", string(outcome.State)).
		Msg("settling a thread whose process is gone")
	after, err := s.Finisher.Finish(ctx, by, w, outcome, cost)
	tidy()
	if err != nil && after.Status.Terminal() {
		// The thread has ended for everybody; a damaged thread.json changes nothing
		// about that.
		s.Log.Warn().Err(err).Str("thread_id", string(id)).Msg("could not finish the files of a dead thread")
		return after, nil
	}
	return after, err
}

// stopRemains stops what a dead thread has left running. A process that cannot be
// stopped must not keep the thread open for ever.
func (s *Sweeper) stopRemains(ctx context.Context, id thread.ID, outcome thread.Outcome, report *Report) {
	// A process that was killed could not stop what its tools had started.
	if err := s.Life.Leftovers(ctx, id); err != nil {
		s.Log.Error().Err(err).Str("thread_id", string(id)).Msg("could not stop the tools of a dead thread")
	}
	s.Crashpoints.At(crashLeftovers)
	// Children of a thread that had completed, or handed over, go on, as they do when
	// it settles itself.
	if s.StopChildren != nil && outcome.State != thread.Completed && outcome.State != thread.Continued {
		stopped, err := s.StopChildren(ctx, id)
		if err != nil {
			s.Log.Error().Err(err).Str("thread_id", string(id)).Msg("could not stop the children of a dead thread")
		}
		report.Stopped = append(report.Stopped, stopped...)
	}
	s.Crashpoints.At(crashChildren)
}

// takeBackSummary removes the summary that a thread had for a successor which never came
// to be.
func (s *Sweeper) takeBackSummary(rec thread.Record, outcome thread.Outcome) {
	if outcome.State == thread.Continued {
		return
	}
	if err := s.Finisher.RemoveSummary(rec); err != nil {
		s.Log.Warn().Err(err).Str("thread_id", string(rec.ThreadID)).Msg("the summary of a dead thread is left")
	}
}

// outcomeOf decides how a dead thread ended: as it had decided itself, when
// that much had reached the transcript; else cancelled, when somebody had
// asked for that; else in error.
func (s *Sweeper) outcomeOf(
	ctx context.Context, rec thread.Record, left records.Thread,
) (thread.Outcome, thread.Cost, error) {
	decided, cost, err := transcript.LastOutcome(left.Transcript())
	if err != nil {
		return thread.Outcome{}, rec.Cost, fmt.Errorf("read the transcript of %s: %w", rec.ThreadID, err)
	}
	if decided != nil {
		return *decided, *cost, nil
	}
	if rec.Kind == thread.KindSet && rec.Status == thread.Running {
		o, err := s.outcomeOfSet(ctx, rec)
		return o, rec.Cost, err
	}
	spent, err := s.spent(ctx, rec, left)
	if err != nil {
		return thread.Outcome{}, rec.Cost, err
	}
	if awaitsHandoff(rec) {
		if left, err := LeftBehind(ctx, s.Finisher.Store, rec); left || err != nil {
			return NotHandedOver(rec.ContinuationOf, nil), spent, err
		}
	}
	if taken := s.notHere(rec, left); taken != nil {
		return *taken, spent, nil
	}
	problem := s.autopsy(ctx, rec, left)
	if !rec.CancelRequestedAt.IsZero() {
		problem.Code, problem.Message = "cancelled", rec.CancelCause().Error()+"; the process had to be ended"
		if rec.Status == thread.Created {
			problem.Message = rec.CancelCause().Error() + " before it started"
		}
		return thread.Outcome{State: thread.Cancelled, Error: problem}, spent, nil
	}
	return thread.Outcome{State: thread.Error, Error: problem}, spent, nil
}

// spent is what the thread had recorded, and what a call of its model comes to that
// was on its way. Each turn reaches the ledger first, so a death in between leaves
// the row behind.
func (s *Sweeper) spent(ctx context.Context, rec thread.Record, left records.Thread) (thread.Cost, error) {
	cost := rec.Cost
	budget, err := s.Finisher.Store.Budget(ctx, rec.ThreadID)
	if err != nil && !errors.Is(err, store.ErrNoBudget) {
		return cost, err
	}
	cost.Spend = max(cost.Spend, budget.Own)
	if budget.Pledged == 0 { // every call that can cost something pledges that, and Report ends the pledge
		return cost, nil
	}
	open, err := transcript.LastInFlight(left.Transcript())
	if err != nil || open == nil {
		return cost, err
	}
	return cost.Add(costOf(*open)), nil
}

// costOf is what a call is charged of whose end nobody heard: as the thread itself
// would have charged it had it been stopped then.
func costOf(open transcript.InFlight) thread.Cost {
	u := limit.Call{
		Input: open.InputTokens, Allowance: open.MaxTokens, Sent: true, Delivered: open.Delivered, Usage: open.Usage,
	}.Billed()
	return thread.Cost{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens, Spend: open.Price.Cost(u),
	}
}
