package tidy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// set is what goes together: a chain with everything below it.
type set struct {
	top     thread.ID // the first of the chain
	members []thread.Record
	bytes   int64 // of their records, once they are measured
}

func (s set) ids() []thread.ID {
	ids := make([]thread.ID, len(s.members))
	for i, rec := range s.members {
		ids[i] = rec.ThreadID
	}
	return ids
}

// spend is what the members have cost, each by itself.
func (s set) spend() (sum thread.Micros) {
	for _, rec := range s.members {
		sum += rec.Cost.Spend
	}
	return sum
}

// digest tells one set from another.
func (s set) digest() string {
	ids := s.ids()
	slices.Sort(ids)
	sum := sha256.New()
	for _, id := range ids {
		_, _ = fmt.Fprintf(sum, "%s\n", id)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// topOf is the first thread of the chain that one goes with. A thread that never came to
// continue another goes alone.
func (t *Tidier) topOf(ctx context.Context, id thread.ID) (thread.ID, error) {
	chain, err := lineage.Chain(id, t.Threads.Getter(ctx))
	if err != nil {
		return "", err
	}
	linked := lineage.Linked(chain)
	if i := slices.IndexFunc(linked, func(rec thread.Record) bool { return rec.ThreadID == id }); i < 0 {
		return id, nil
	}
	return linked[0].ThreadID, nil
}

// setOf is what goes with a thread. Its dead threads are settled.
func (t *Tidier) setOf(ctx context.Context, id thread.ID) (set, error) {
	top, err := t.topOf(ctx, id)
	if err != nil {
		return set{}, err
	}
	for again := false; ; again = true {
		trees, err := t.Threads.Store.Trees(ctx, []thread.ID{top})
		if err != nil {
			return set{}, err
		}
		members, there := trees[top]
		if !there {
			_, err := t.Threads.Store.Get(ctx, top) // it says whether it was deleted
			return set{}, errors.Join(err, thread.ErrNotFound)
		}
		if again || !t.settle(ctx, members) {
			return set{top: top, members: members}, nil
		}
	}
}

// settle looks at those that have not ended, and reports whether one of them had.
func (t *Tidier) settle(ctx context.Context, members []thread.Record) (changed bool) {
	for _, rec := range members {
		if rec.Status.Terminal() {
			continue
		}
		now, err := t.Threads.Examine(ctx, rec.ThreadID)
		if err == nil && now.Status != rec.Status {
			changed = true
		}
	}
	return changed
}

// living are the members that have not ended.
func (s set) living() (ids []thread.ID) {
	for _, rec := range s.members {
		if !rec.Status.Terminal() {
			ids = append(ids, rec.ThreadID)
		}
	}
	return ids
}

// measure notes of sets how much room their records take.
func (t *Tidier) measure(sets []set) {
	for i := range sets {
		sets[i].bytes = t.bytes(sets[i])
	}
}

// bytes is how much room the records of the members take.
func (t *Tidier) bytes(s set) (sum int64) {
	for _, rec := range s.members {
		if n, err := t.Threads.Records.Of(rec.ThreadID).Whole().Size(); err == nil {
			sum += n
		}
	}
	return sum
}

// mayDelete lets a thread delete its own descendants only, and never itself or what it
// is below of.
func (t *Tidier) mayDelete(ctx context.Context, from thread.ID, s set) error {
	if from == "" {
		return nil
	}
	for _, rec := range s.members {
		if rec.ThreadID == from {
			return tool.Faultf(tool.CodePermissionDenied, "thread %s cannot delete itself, or what goes with it", from)
		}
		if err := t.Threads.IsBelow(ctx, rec.ThreadID, from, "so it cannot be deleted from there"); err != nil {
			return err
		}
	}
	return nil
}

// blocks says why a set should not go, beside that something of it lives; nil: nothing
// speaks against it.
func (t *Tidier) blocks(ctx context.Context, s set) error {
	for _, rec := range s.members {
		for _, b := range t.Belongings {
			if b.Blocks == nil {
				continue
			}
			if why := b.Blocks(ctx, rec); why != "" {
				return tool.Faultf(tool.CodeConflict, "%s of thread %s: %s", b.Name, rec.ThreadID, why).With("thread_id", rec.ThreadID).
					WithHint("put that right first; force deletes it all the same")
			}
		}
	}
	return nil
}

// awaitFiles waits until nobody writes to the files of the members any more.
func (t *Tidier) awaitFiles(ctx context.Context, s set) error {
	for _, rec := range s.members {
		if err := t.awaitWriter(ctx, rec.ThreadID); err != nil {
			return err
		}
	}
	return nil
}

// awaitWriter waits a moment for the process that has the life of a thread which has ended.
func (t *Tidier) awaitWriter(ctx context.Context, id thread.ID) error {
	free, err := t.Threads.AwaitRelease(ctx, id)
	if err != nil || free {
		return err
	}
	return tool.Faultf(tool.CodeConflict, "thread %s has ended and a process still writes its last files", id).
		WithHint("call again in a moment")
}

// refusal tells why a set could not be deleted.
func refusal(err error) error {
	var living *store.NotEndedError
	var grown *store.OutsideError
	switch {
	case errors.As(err, &living):
		return notEnded(living.Thread, living.State)
	case errors.As(err, &grown):
		return tool.Faultf(tool.CodeConflict, "%w", grown).With("thread_id", grown.Thread).
			WithHint("delete_thread with dry_run shows what goes now")
	}
	return err
}

// notStopped says that a thread could not be stopped, so that nothing is deleted.
func notStopped(id thread.ID, state thread.State) error {
	return tool.Faultf(tool.CodeConflict, "thread %s was asked to stop and is still %s; nothing was deleted", id, state).
		With("thread_id", id).WithHint("kill_thread, then delete_thread again")
}

// leftover says that threads are deleted while something of them is left.
func leftover(err error) error {
	f := *threads.Fault(err)
	return (&f).WithHint("the threads are deleted; what is left of their files goes with the next deletion or sweep of a server")
}

// notEnded refuses to delete what lives.
func notEnded(id thread.ID, state thread.State) error {
	return tool.Faultf(tool.CodeConflict, "thread %s is %s; only threads that have ended are deleted", id, state).
		With("thread_id", id).With("status", state).
		WithHint("wait_threads or cancel_thread, or delete_thread with force, which stops it first").
		WithTry("rye-mcp threads wait %[1]s, or rye-mcp threads delete %[1]s --force, which stops it first", id)
}
