// Package stop ends threads and everything below them: the intent first, then the
// processes, children before parents.
package stop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// How a thread came to its end, in receipts, beside what [life.Life.Stop]
// says.
const (
	howEnded      = "already_ended"
	howNotStarted = "not_started"
	howNotRetried = "not_retried" // it had ended, and is not tried again
	// howAsked: another container or machine runs it, which finds the cancel on
	// record; nothing is signalled from here.
	howAsked = "asked_elsewhere"
)

// killGrace is the time between SIGTERM and SIGKILL of kill_thread.
const killGrace = 3 * time.Second

// Stopper stops the threads of a project.
type Stopper struct {
	Threads  *threads.Threads
	Settings *settings.Source

	by string // who stops, in words; empty: nobody says
}

// ByPerson is who stops with a command.
const ByPerson = "a person, at the command line"

// By is the stopper for somebody, whom the threads that it stops name.
func (s *Stopper) By(who string) *Stopper {
	theirs := *s
	theirs.by = who
	return &theirs
}

// Receipt says how one thread was stopped.
type Receipt struct {
	ThreadID thread.ID     `json:"thread_id"`
	Status   thread.State  `json:"status" jsonschema:"state of the thread, or not_found"`
	Spend    thread.Micros `json:"spend" jsonschema:"US dollars, its own"`
	How      string        `json:"how" jsonschema:"already_ended, not_started, not_retried, interrupted, terminated, killed; asked_elsewhere: on another machine or container, by the cancel on record"`
	Worker   string        `json:"worker,omitempty" jsonschema:"the worker that ran it"`
	Error    string        `json:"error,omitempty" jsonschema:"why it could not be stopped"`
	Nearest  []thread.ID   `json:"nearest_ids,omitempty" jsonschema:"where there is no such thread"`
}

// Stopped is the answer to cancel_thread and kill_thread.
type Stopped struct {
	Success  bool      `json:"success" jsonschema:"true when every named thread has ended"`
	ThreadID thread.ID `json:"thread_id,omitempty" jsonschema:"the asked thread, where it is one"`
	// ResolvedThreadID is set when the one asked thread has a successor.
	ResolvedThreadID thread.ID `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it"`
	Receipts         []Receipt `json:"receipts" jsonschema:"the threads and every descendant, with all of their chains"`
}

// Tells implements [view.Teller].
func (s Stopped) Tells() (told []view.Told) {
	for _, r := range s.Receipts {
		told = append(told, view.Told{ThreadID: r.ThreadID, Status: r.Status})
	}
	return told
}

// Cancel stops threads and everything below them. The intent is recorded first,
// so that it holds even when this process dies on the way; then every process
// is interrupted at its running model call or tool, and those that do not end
// are terminated and killed, children before parents. It can be repeated and
// run concurrently.
func (s *Stopper) Cancel(ctx context.Context, ids ...thread.ID) (Stopped, error) {
	ladder, _ := s.Settings.Begin().Patience()
	return s.Stop(ctx, ladder, ids...)
}

// Kill is Cancel without the soft stop: SIGTERM, three seconds, SIGKILL.
func (s *Stopper) Kill(ctx context.Context, ids ...thread.ID) (Stopped, error) {
	return s.Stop(ctx, life.Ladder{Term: killGrace}, ids...)
}

// Stop stops threads and everything below them, as patiently as the ladder says. An id
// that names no thread, among others that do, has that as its receipt.
func (s *Stopper) Stop(ctx context.Context, ladder life.Ladder, ids ...thread.ID) (Stopped, error) {
	if len(ids) == 0 {
		return Stopped{}, tool.Faultf(tool.CodeBadArguments, "thread_ids is empty; name at least one thread").
			WithHint("list_active shows what is running")
	}
	var stopped Stopped
	var firsts, unknown []thread.ID
	for _, id := range ids {
		chain, err := s.Threads.Chain(ctx, id)
		if errors.Is(err, thread.ErrNotFound) {
			unknown = append(unknown, id)
			continue
		}
		if err != nil {
			return Stopped{}, threads.Fault(err)
		}
		// All of the chain is below its first thread, and so is what those who handed
		// over have left running. One that never came to continue another has no part in
		// that one's chain.
		firsts = append(firsts, lineage.Linked(chain)[0].ThreadID)
		if newest := chain[len(chain)-1].ThreadID; len(ids) == 1 && newest != id {
			stopped.ResolvedThreadID = newest
		}
	}
	if len(firsts) == 0 {
		return Stopped{}, s.Threads.NoThread(ctx, unknown...)
	}
	if len(ids) == 1 {
		stopped.ThreadID = ids[0]
	}
	// The caller going away does not take back the intent.
	receipts, err := s.Trees(context.WithoutCancel(ctx), firsts, ladder)
	if err != nil {
		return Stopped{}, threads.Fault(err)
	}
	stopped.Receipts = receipts
	stopped.Success = !slices.ContainsFunc(stopped.Receipts, func(r Receipt) bool { return !r.Status.Terminal() }) && len(unknown) == 0
	near := s.Threads.NearestOf(ctx, unknown...)
	for _, id := range unknown {
		stopped.Receipts = append(stopped.Receipts, Receipt{ThreadID: id, Status: threads.NotFound, Nearest: near[id]})
	}
	return stopped, nil
}

// Here runs the ladder on one thread whose cancel is on record, and on nothing below it.
func (s *Stopper) Here(ctx context.Context, id thread.ID) (Receipt, error) {
	rec, err := s.Threads.Store.Get(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	ladder, _ := s.Settings.Begin().Patience()
	return s.stopRows(ctx, []thread.Record{rec}, ladder)[0], nil
}

// Remains stops what a thread that ends without having completed leaves
// running: the processes its tools have started, and the threads below it, unless
// the project's policy is to keep those.
func (s *Stopper) Remains(ctx context.Context, id thread.ID) error {
	leftovers := s.Threads.Life.Leftovers(ctx, id)
	_, err := s.Orphans(ctx, id)
	return errors.Join(leftovers, err)
}

// Orphans stops what runs below a thread, and below those that it continues,
// by the project's policy, and returns the threads that it stopped.
func (s *Stopper) Orphans(ctx context.Context, id thread.ID) ([]thread.ID, error) {
	ladder, keep := s.Settings.Begin().Patience()
	if keep {
		return nil, nil
	}
	chain, err := lineage.Chain(id, s.Threads.Getter(ctx))
	if err != nil {
		return nil, err
	}
	below, err := s.Threads.Store.Descendants(ctx, chain[0].ThreadID)
	if err != nil {
		return nil, err
	}
	var children []thread.ID
	for _, rec := range below {
		if threads.InChain(chain, rec.ParentID) {
			children = append(children, rec.ThreadID)
		}
	}
	receipts, err := s.By(fmt.Sprintf("the end of thread %s", id)).Trees(ctx, children, ladder)
	var stopped []thread.ID
	for _, r := range receipts {
		switch {
		case r.Error != "":
			err = errors.Join(err, fmt.Errorf("stop %s: %s", r.ThreadID, r.Error))
		case r.How != howEnded:
			stopped = append(stopped, r.ThreadID)
		}
	}
	return stopped, err
}

// Trees records the intent for threads and everything below them, stops
// what had not ended, and returns a receipt for each thread, parents first.
func (s *Stopper) Trees(ctx context.Context, tops []thread.ID, ladder life.Ladder) ([]Receipt, error) {
	var before *Receipt
	if err := s.intend(ctx, tops); err != nil {
		if before, err = s.intendFreed(ctx, tops, ladder, err); err != nil {
			return s.stopUnrecorded(ctx, tops, ladder, err)
		}
	}
	s.Threads.Crashpoints.At(CrashIntended)
	// Nothing can be added below them any more: a thread with a cancel on record
	// may not spawn or hand over, and neither may one below it that has ended.
	rows, err := s.trees(ctx, tops)
	if err != nil {
		return nil, err
	}
	return before.amend(s.stopRows(ctx, rows, ladder)), nil
}

// intend puts the cancel of threads and of everything below them on record.
func (s *Stopper) intend(ctx context.Context, tops []thread.ID) error {
	for _, id := range tops {
		if _, err := s.Threads.Store.RequestCancel(ctx, id, s.by, s.Threads.Now()); err != nil {
			return fmt.Errorf("record the cancel of %s: %w", id, err)
		}
	}
	return nil
}

// trees are threads and everything below them.
func (s *Stopper) trees(ctx context.Context, tops []thread.ID) (rows []thread.Record, err error) {
	for _, id := range tops {
		top, err := s.Threads.Store.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		below, err := s.Threads.Store.Descendants(ctx, id)
		if err != nil {
			return nil, err
		}
		rows = append(append(rows, top), below...)
	}
	return distinct(rows), nil
}

// distinct leaves out the rows that came before: a thread is below the one that it
// continues and below its parent.
func distinct(rows []thread.Record) []thread.Record {
	seen := make(map[thread.ID]bool, len(rows))
	return slices.DeleteFunc(rows, func(rec thread.Record) bool {
		again := seen[rec.ThreadID]
		seen[rec.ThreadID] = true
		return again
	})
}

// stopRows stops threads and returns their receipts in the order of rows. All of them
// are asked first, so that none works on while another takes its time, and none is told
// of the end of another before it is told of its own; then each level has the ladder's patience, and the next one
// its turn when that has ended. A process may so be interrupted twice.
func (s *Stopper) stopRows(ctx context.Context, rows []thread.Record, ladder life.Ladder) []Receipt {
	all := stopping{Stopper: s, ladder: ladder, receipts: make(map[thread.ID]*Receipt, len(rows))}
	levels := lineage.DeepestFirst(rows)
	all.askAll(ctx, levels)
	s.Threads.Crashpoints.At(CrashInterrupted)
	all.settleQueued(ctx, rows)
	s.Threads.Crashpoints.At(CrashUnqueued)
	for _, level := range levels {
		all.stopLevel(ctx, slices.DeleteFunc(slices.Clone(level), unstarted))
		s.Threads.Crashpoints.At(CrashLevel)
	}
	// A thread without a process is held by its starter, which may be one above it that
	// was suspended at that and is ended by now.
	all.stopLevel(ctx, slices.Concat(levels...))
	ordered := make([]Receipt, len(rows))
	for i, rec := range rows {
		ordered[i] = *all.receipts[rec.ThreadID]
	}
	return ordered
}

// unstarted tells that a thread has no process yet.
func unstarted(rec thread.Record) bool { return !rec.Status.Terminal() && rec.PID == 0 }

// stopping is one stop of a tree whose cancel is on record.
type stopping struct {
	*Stopper
	ladder   life.Ladder
	asked    map[thread.ID]life.How
	receipts map[thread.ID]*Receipt
}

// askAll sends the first signal of the ladder to all, the deepest first. A kill of one
// level begins with that anyway.
func (s *stopping) askAll(ctx context.Context, levels [][]thread.Record) {
	s.asked = map[thread.ID]life.How{}
	how := life.Interrupted
	if s.ladder.Soft <= 0 {
		how = life.Terminated
	}
	if how == life.Terminated && (s.ladder.Term <= 0 || len(levels) < 2) {
		return
	}
	for _, rec := range slices.Concat(levels...) {
		if !rec.Status.Terminal() && rec.PID != 0 && s.Alive(ctx, rec) && s.Threads.Life.Ask(rec, how) == nil {
			s.asked[rec.ThreadID] = how
		}
	}
}

// settleQueued ends those that are queued. They have no process and nothing
// below them, so nobody has to be waited for; there can be thousands.
func (s *stopping) settleQueued(ctx context.Context, rows []thread.Record) {
	for _, rec := range rows {
		if !rec.Queued() {
			continue
		}
		now, err := s.Threads.Examine(ctx, rec.ThreadID)
		if err != nil {
			now = rec
		}
		if err != nil || now.Status.Terminal() {
			r := receipt(now, howNotStarted, err)
			s.receipts[rec.ThreadID] = &r
		}
	}
}

// stopLevel stops threads at the same time, and returns when each has ended or
// could not be stopped.
func (s *stopping) stopLevel(ctx context.Context, level []thread.Record) {
	var group sync.WaitGroup
	for _, rec := range level {
		if s.receipts[rec.ThreadID] != nil {
			continue
		}
		receipt := new(Receipt)
		s.receipts[rec.ThreadID] = receipt
		group.Go(func() { *receipt = s.stopOne(ctx, rec) })
	}
	group.Wait()
}

// stopOne ends the process of one thread and what that has started, and settles
// the thread when it cannot do so itself any more.
func (s *stopping) stopOne(ctx context.Context, rec thread.Record) Receipt {
	if rec.Status.Terminal() && rec.RetryNote == thread.RetryCancelled {
		return receipt(rec, howNotRetried, nil)
	}
	if rec.Status.Terminal() {
		return s.stopEnded(ctx, rec, s.ladder)
	}
	// How it ended, should it do so without what follows.
	byItself := howEnded
	switch {
	case s.asked[rec.ThreadID] != "":
		byItself = string(s.asked[rec.ThreadID])
	case rec.Status == thread.Created:
		byItself = howNotStarted
	}
	// One without a process is between its row and its start: the process finds
	// the cancel when it claims the row.
	rec, err := s.Threads.AwaitRow(ctx, rec, func(r thread.Record) bool {
		return r.Status.Terminal() || r.PID != 0 || s.suspendedAtStart(r)
	})
	if err == nil && !rec.Status.Terminal() && rec.PID == 0 {
		return s.stopUnnamed(ctx, rec, byItself)
	}
	if err != nil || rec.Status.Terminal() {
		return toldToStop(rec, byItself, err)
	}
	if reach := s.Threads.Life.Reach(rec.Process); reach == life.Walled || reach == life.Elsewhere {
		return s.awaitElsewhere(ctx, rec, reach)
	}
	how, err := s.Threads.Life.Stop(ctx, rec, s.ladder, func() bool { return s.isCurrent(ctx, rec) })
	if err == nil {
		// Processes that a tool of it has moved out of its session.
		err = s.Threads.Life.Leftovers(ctx, rec.ThreadID)
	}
	after, rowErr := s.Threads.AwaitRow(ctx, rec, func(r thread.Record) bool { return r.Status.Terminal() || err != nil })
	if how == life.AlreadyGone {
		return toldToStop(after, byItself, errors.Join(err, rowErr))
	}
	return toldToStop(after, string(how), errors.Join(err, rowErr))
}

// awaitElsewhere gives a thread that this process cannot signal the ladder's time
// to end by the cancel on record.
func (s *stopping) awaitElsewhere(ctx context.Context, rec thread.Record, reach life.Reach) Receipt {
	within, stop := context.WithTimeout(ctx, s.ladder.Soft+s.ladder.Term)
	defer stop()
	after, err := s.Threads.AwaitRow(within, rec, func(r thread.Record) bool { return r.Status.Terminal() })
	if err == nil && !after.Status.Terminal() {
		err = &elsewhereError{process: rec.Process, reach: reach}
	}
	return toldToStop(after, howAsked, err)
}

// elsewhereError says of a thread that is to stop and has not yet where it runs.
type elsewhereError struct {
	process thread.Process
	reach   life.Reach
}

func (e *elsewhereError) Error() string {
	where := "on another machine"
	if e.reach == life.Walled {
		where = "in another container of this machine"
	}
	return fmt.Sprintf("its process is number %d %s (host %q), so nothing is signalled from here; the cancel is on record, "+
		"and the thread ends when it finds it; where it does not, run rye-mcp threads kill there", e.process.PID, where, e.process.Host)
}

// Alive reports whether the thread's process holds its life and is within
// reach of a signal. A process that settles a dead thread holds it too, and
// takes the dead one out of the row. A thread about which nothing can be decided
// counts as gone, so that no stranger is ever signalled.
func (s *Stopper) Alive(ctx context.Context, rec thread.Record) bool {
	held, err := s.Threads.Life.Held(life.Of(rec))
	return err == nil && held && s.near(rec.Process) && s.isCurrent(ctx, rec)
}

// isCurrent reports whether the process of a row is still that of its thread.
func (s *Stopper) isCurrent(ctx context.Context, rec thread.Record) bool {
	now, err := s.Threads.Store.Get(ctx, rec.ThreadID)
	return err == nil && now.PID == rec.PID
}

// toldToStop is the receipt of a thread that was told to stop. One whose work was complete,
// or that had handed over, has ended by itself, whatever its process was sent.
func toldToStop(rec thread.Record, how string, err error) Receipt {
	if rec.Status == thread.Completed || rec.Status == thread.Continued {
		how = howEnded
	}
	return receipt(rec, how, err)
}

func receipt(rec thread.Record, how string, err error) Receipt {
	r := Receipt{ThreadID: rec.ThreadID, Status: rec.Status, Spend: rec.Cost.Spend, How: how, Worker: rec.Worker}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// near tells whether the number of a thread's process is that process here.
func (s *Stopper) near(p thread.Process) bool { return s.Threads.Life.Reach(p) == life.Near }
