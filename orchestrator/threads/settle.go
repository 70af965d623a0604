package threads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Bounds of the waits for others, who are about to do what is waited for: the
// spawner of a thread that is just being started, and whoever is settling one
// that is dead. Both end by themselves as soon as they find the cancel on
// record, or leave the lock free when they die.
const (
	othersGrace = 10 * time.Second
	othersPoll  = 50 * time.Millisecond // a lock that becomes free makes no event
)

// Examine is the row of this very thread, settled when its process is gone.
func (t *Threads) Examine(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := t.Store.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	return t.Sweeper.Examine(ctx, rec)
}

// AwaitRow waits until the row of a thread is as wanted, or the others had
// their time, and returns it as it is then.
func (t *Threads) AwaitRow(ctx context.Context, rec thread.Record, wanted func(thread.Record) bool) (thread.Record, error) {
	ctx, stop := context.WithTimeout(ctx, othersGrace)
	defer stop()
	changes := t.Store.Changes(ctx)
	poll := time.NewTicker(othersPoll)
	defer poll.Stop()
	for {
		now, err := t.Examine(ctx, rec.ThreadID)
		if ctx.Err() != nil {
			return rec, nil
		}
		if err != nil || wanted(now) {
			return now, err
		}
		rec = now
		select {
		case <-changes:
		case <-poll.C:
		case <-ctx.Done():
			return rec, nil
		}
	}
}

// settleEvery is how often a thread is tried to be settled that cannot be: the cause that has
// ended the process, as a store that cannot be written, may keep its end from being told, too.
const settleEvery = time.Second

// settleDead sees to it that a thread whose process has ended is settled, by
// itself or by others who have noticed.
func (t *Threads) settleDead(ctx context.Context, id thread.ID) {
	again := time.NewTicker(settleEvery)
	defer again.Stop()
	for told := false; ; told = true {
		_, err := t.AwaitRow(ctx, thread.Record{ThreadID: id}, func(r thread.Record) bool { return r.Status.Terminal() })
		if err == nil || ctx.Err() != nil || thread.WasDeleted(err, id) {
			return
		}
		if !told {
			t.Log.Error().Err(err).Str("thread_id", string(id)).Msg("could not settle a thread whose process has ended; it is tried again")
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// Settled is the row of a thread after what a crash has left undone is done, so
// that it is not taken for damage.
func (t *Threads) Settled(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := t.Examine(ctx, id)
	if err != nil || !rec.Status.Terminal() {
		return rec, err
	}
	if _, err := t.AwaitRelease(ctx, id); err != nil {
		return rec, err
	}
	// The check is about to name what cannot be completed.
	if err := t.Sweeper.Complete(ctx, rec); err != nil && !errors.Is(err, finish.ErrOutcomeLost) && !errors.Is(err, fs.ErrNotExist) {
		t.Log.Warn().Err(err).Str("thread_id", string(id)).Msg("could not complete the end of a thread")
	}
	return rec, nil
}

// Complete repeats the last steps of an ended thread that a crash cut short.
func (t *Threads) Complete(ctx context.Context, rec thread.Record) {
	if err := t.Sweeper.Complete(ctx, rec); err != nil {
		t.Log.Error().Err(err).Str("thread_id", string(rec.ThreadID)).Msg("could not complete the end of a thread")
	}
}

// A thread writes its last files within milliseconds after its row says that it
// has ended, and then lets go of its life. Nothing tells of that, so it is looked
// at in between.
const (
	releaseGrace = 5 * time.Second
	releasePoll  = 5 * time.Millisecond
)

// AwaitRelease waits until nobody holds the life of an ended thread, but not for
// ever: its files are then judged as they are, and free is false.
func (t *Threads) AwaitRelease(ctx context.Context, id thread.ID) (free bool, err error) {
	ctx, stop := context.WithTimeout(ctx, releaseGrace)
	defer stop()
	poll := time.NewTicker(releasePoll)
	defer poll.Stop()
	for {
		held, err := t.Life.Held(life.Key{Thread: id})
		if err != nil || !held {
			return err == nil, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// AfterEnd writes what belongs to a thread that has ended, which nobody else does meanwhile.
func (t *Threads) AfterEnd(ctx context.Context, id thread.ID, write func(of records.Thread) error) error {
	if _, err := t.AwaitRelease(ctx, id); err != nil {
		return err
	}
	rec, hold, ok, err := t.Sweeper.ClaimEnded(ctx, id)
	if !ok {
		return cmp.Or(err, life.ErrHeld)
	}
	defer func() { _ = hold.Release() }()
	return write(t.Records.By(id, rec.Run))
}

// leasePoll is how often a lease is asked for: one that becomes free makes no event.
const leasePoll = 10 * time.Millisecond

// AwaitLease waits for a lease of the project. It is nil when another process keeps it for
// longer than patience.
func (t *Threads) AwaitLease(ctx context.Context, name string, patience time.Duration) (life.Hold, error) {
	over := time.NewTimer(patience)
	defer over.Stop()
	poll := time.NewTicker(leasePoll)
	defer poll.Stop()
	for {
		hold, err := t.Life.Lease(name)
		if err == nil {
			return hold, nil
		}
		if !errors.Is(err, life.ErrHeld) {
			return nil, fmt.Errorf("lease of %s: %w", name, err)
		}
		select {
		case <-poll.C:
		case <-over.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
