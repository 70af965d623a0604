package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// How a thread came to its end, in receipts.
const (
	howEnded      = "already_ended"
	howNotStarted = "not_started"
)

// killGrace is the time between SIGTERM and SIGKILL of kill_thread.
const killGrace = 3 * time.Second

// launchGrace bounds the wait for the process of a thread that is just being
// started; it ends by itself as soon as it finds the cancel on record.
const launchGrace = 10 * time.Second

// Cancel stops a thread and everything below it. The intent is recorded first,
// so that it holds even when this process dies on the way; then every process
// is interrupted at its running model call or tool, and those that do not end
// are terminated and killed, children before parents. It can be repeated and
// run concurrently.
func (c *Controller) Cancel(ctx context.Context, id thread.ID) (Stopped, error) {
	agent, _, err := c.Config.Agent()
	if err != nil {
		return Stopped{}, fault(err)
	}
	return c.stop(ctx, id, process.Ladder{
		Soft: seconds(agent.Threads.SoftStopSeconds), Term: seconds(agent.Threads.TermSeconds),
	})
}

// Kill is Cancel without the soft stop: SIGTERM, three seconds, SIGKILL.
func (c *Controller) Kill(ctx context.Context, id thread.ID) (Stopped, error) {
	return c.stop(ctx, id, process.Ladder{Term: killGrace})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (c *Controller) stop(ctx context.Context, id thread.ID, ladder process.Ladder) (Stopped, error) {
	rec, err := c.look(ctx, id)
	if err != nil {
		return Stopped{}, fault(err)
	}
	below, err := c.Store.Descendants(ctx, rec.ThreadID)
	if err != nil {
		return Stopped{}, fault(err)
	}
	stopped := Stopped{Success: true, ThreadID: rec.ThreadID}
	for _, r := range append([]thread.Record{rec}, below...) {
		if r.Status.Terminal() {
			stopped.Receipts = append(stopped.Receipts, receipt(r, howEnded))
		}
	}
	// The caller going away does not take back the intent.
	receipts, err := c.stopTree(context.WithoutCancel(ctx), rec.ThreadID, ladder)
	if err != nil {
		return Stopped{}, fault(err)
	}
	stopped.Receipts = append(stopped.Receipts, receipts...)
	for _, r := range stopped.Receipts {
		stopped.Success = stopped.Success && r.Status.Terminal()
	}
	return stopped, nil
}

// stopTree records the intent for a thread and its descendants and stops those
// that had not ended.
func (c *Controller) stopTree(ctx context.Context, id thread.ID, ladder process.Ladder) ([]Receipt, error) {
	rows, err := c.Store.RequestCancel(ctx, id, c.Now())
	if err != nil {
		return nil, fmt.Errorf("record the cancel of %s: %w", id, err)
	}
	return c.stopRows(ctx, rows, ladder)
}

// StopOrphans stops what a thread that ends without having completed leaves
// running below it, unless the project's policy is to keep that.
func (c *Controller) StopOrphans(ctx context.Context, id thread.ID) error {
	agent, _, err := c.Config.Agent()
	if err != nil || agent.Threads.Orphans == "keep" {
		return err
	}
	below, err := c.Store.Descendants(ctx, id)
	if err != nil {
		return err
	}
	ladder := process.Ladder{
		Soft: seconds(agent.Threads.SoftStopSeconds), Term: seconds(agent.Threads.TermSeconds),
	}
	for _, child := range below {
		if child.ParentID != id || child.Status.Terminal() {
			continue
		}
		if _, err := c.stopTree(ctx, child.ThreadID, ladder); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) stopRows(ctx context.Context, rows []thread.Record, ladder process.Ladder) ([]Receipt, error) {
	levels := lineage.DeepestFirst(rows)
	if ladder.Soft > 0 {
		for _, rec := range slices.Concat(levels...) {
			if rec.PID != 0 && c.alive(rec.ThreadID) {
				_ = process.Interrupt(rec.PID) // the ladder below deals with one that is gone
			}
		}
	}
	var receipts []Receipt
	for _, level := range levels {
		stopped := make([]Receipt, len(level))
		errs := make([]error, len(level))
		var group sync.WaitGroup
		for i, rec := range level {
			group.Go(func() { stopped[i], errs[i] = c.stopOne(ctx, rec, ladder) })
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return receipts, err
			}
		}
		receipts = append(receipts, stopped...)
	}
	return receipts, nil
}

// stopOne ends the process of one thread whose cancel is on record, and
// settles the thread when it cannot do so itself any more.
func (c *Controller) stopOne(ctx context.Context, rec thread.Record, ladder process.Ladder) (Receipt, error) {
	if rec.PID == 0 {
		return c.stopUnstarted(ctx, rec, ladder)
	}
	how, err := process.StopGroup(ctx, rec.PID, func() bool { return c.alive(rec.ThreadID) }, ladder)
	if err != nil {
		return Receipt{}, fmt.Errorf("stop the process of %s: %w", rec.ThreadID, err)
	}
	after, err := c.examineAgain(ctx, rec.ThreadID)
	return receipt(after, string(how)), err
}

// stopUnstarted waits for a thread that is between its row and its process:
// the process finds the cancel when it claims the row, and a spawner that died
// leaves the lock free.
func (c *Controller) stopUnstarted(ctx context.Context, rec thread.Record, ladder process.Ladder) (Receipt, error) {
	waiting, stop := context.WithTimeout(ctx, launchGrace)
	defer stop()
	changes := c.Store.Changes(waiting)
	poll := time.NewTicker(50 * time.Millisecond) // the lock of a dead spawner makes no event
	defer poll.Stop()
	for {
		now, err := c.examineAgain(ctx, rec.ThreadID)
		if err != nil || now.Status.Terminal() {
			return receipt(now, howNotStarted), err
		}
		if now.PID != 0 {
			return c.stopOne(ctx, now, ladder)
		}
		select {
		case <-changes:
		case <-poll.C:
		case <-waiting.Done():
			return receipt(now, howNotStarted), nil
		}
	}
}

func (c *Controller) examineAgain(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := c.Store.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	return c.sweeper.Examine(ctx, rec)
}

// alive reports whether the thread's process holds its life lock. What cannot
// be decided counts as gone, so that no stranger is ever signalled.
func (c *Controller) alive(id thread.ID) bool {
	held, err := process.Held(c.folder(id).Lock())
	return err == nil && held
}

func receipt(rec thread.Record, how string) Receipt {
	return Receipt{ThreadID: rec.ThreadID, Status: rec.Status, Spend: rec.Cost.Spend, How: how}
}
