package view

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Started is the answer to the start of a thread, with what has become of it.
func (v *View) Started(ctx context.Context, id thread.ID, existing bool) (Started, error) {
	now, err := v.Threads.Look(ctx, id)
	if err != nil {
		return Started{}, threads.Fault(err)
	}
	s := Started{
		ThreadID: id, Directive: now.Directive, Status: now.Status, Cost: now.Cost,
		Success: now.AwaitsRetry() || now.Status != thread.Error && now.Status != thread.Cancelled, Existing: existing, End: endOf(now),
	}
	if now.ThreadID != id {
		s.ResolvedThreadID = now.ThreadID
	}
	if s.ChainCost, s.TreeSpend, err = v.Threads.Spending(ctx, now); err != nil {
		return Started{}, threads.Fault(err)
	}
	if meta, err := v.Threads.Described(now.ThreadID); err == nil {
		s.Warnings = slices.Concat(meta.Warnings, s.Warnings)
	}
	switch {
	case now.Queued():
		s.Queued = true
		s.Next = v.queuedNext(ctx, now)
	case s.Retry != nil:
		s.Next = RetryNext(s.Retry)
	case !now.Status.Terminal():
		s.PID, s.Next = now.PID, startedNext
	case !s.Success:
		s.Next = failedNext
		if existing {
			s.Next = "request_key names this thread for good: use another key to start anew"
		}
	}
	if s.Failed() && s.Problem != nil {
		s.Code = s.Problem.Code
	}
	return s, nil
}

const failedNext = "read_transcript with this thread_id shows what it did; resume_thread with a message goes on from there"

const startedNext = "wait_threads with this thread_id; get_status or read_transcript to look at it; cancel_thread to stop it"

// Launched is the answer to the start of a thread whose process the caller has just
// started, with what the caller knows: a look would tell the same.
func (v *View) Launched(rec thread.Record, warnings []string) Started {
	return Started{
		Success: true, ThreadID: rec.ThreadID, Directive: rec.Directive, Status: rec.Status, Cost: rec.Cost,
		PID: rec.PID, Next: startedNext, End: End{Warnings: slices.Clip(warnings)},
	}
}

// queuedNext tells the caller of a queued thread what it waits for.
func (v *View) queuedNext(ctx context.Context, rec thread.Record) string {
	if why := v.Threads.NoWorker(ctx, rec); why != "" {
		return why + ". Next: " + nextInQueue
	}
	load, err := v.Threads.Store.QueueLoad(ctx)
	if err != nil {
		return nextInQueue
	}
	return placeInQueue(load, v.Threads.Fleet != nil) + nextInQueue
}

// mostAsked is of how many queued threads the fleet is asked: each time its server is.
const mostAsked = 3

// NoWorker says of the first of those of threads that are queued why no worker takes them; one
// that a worker will take is left out.
func (v *View) NoWorker(ctx context.Context, rows map[thread.ID]thread.Record) map[thread.ID]string {
	why, asked := map[thread.ID]string{}, 0
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		rec := rows[id]
		if !rec.Queued() {
			continue
		}
		if asked++; asked > mostAsked {
			break
		}
		if said := v.Threads.NoWorker(ctx, rec); said != "" {
			why[rec.ThreadID] = said
		}
	}
	return why
}

// NoWorkerNext tells what to do about threads that no worker takes.
func NoWorkerNext(why map[thread.ID]string) string {
	id := slices.Min(slices.Collect(maps.Keys(why)))
	return fmt.Sprintf("thread %s is queued: %s. Next: %s", id, why[id], nextInQueue)
}

const nextInQueue = "wait_threads with this thread_id; cancel_thread to take it out of the queue"

// placeInQueue says what a queued thread waits for: one of the workers, or a slot.
func placeInQueue(load store.QueueLoad, fleet bool) string {
	if fleet {
		return fmt.Sprintf("running: %d, queued for a worker: %d; ", load.Occupied, load.Queued)
	}
	return fmt.Sprintf("running: %d, as many as may at the same time (threads.max_running), queued: %d; ", load.Occupied, load.Queued)
}

// Failed reports whether the thread has ended without success.
func (s Started) Failed() bool { return !s.Success }

// StartedThread tells the caller's own thread which child it has started.
func (s Started) StartedThread() thread.ID { return s.ThreadID }
