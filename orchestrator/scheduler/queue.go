package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// enqueue describes a thread on disk, links it to the one that it continues, if
// any, and puts it in the queue. When it is admitted at once the row says so, and the
// caller starts its process. That is left to the workers of a fleet, unless only this
// process can run it.
func (c *Call) enqueue(ctx context.Context, run thread.Run, meta thread.Meta, here bool) (thread.Record, error) {
	c.Seal(&meta)
	if meta.Accepted = nil; c.Threads.Fleet != nil {
		meta.Accepted = c.Accepted()
	}
	if err := c.Threads.Records.By(meta.ThreadID, run).Meta().Write(meta); err != nil {
		return thread.Record{}, fmt.Errorf("write thread.json: %w", err)
	}
	c.Threads.Crashpoints.At(CrashDescribed)
	if before := meta.ContinuationOf; before != "" {
		if err := c.Threads.Store.Link(ctx, before, meta.ThreadID, c.Threads.Now()); err != nil {
			return thread.Record{}, err
		}
		c.Threads.Crashpoints.At(CrashLinked)
	}
	slots := c.Slots()
	if done, room := c.Threads.Room(ctx); room {
		defer done()
	} else if !here {
		slots = 0
	}
	if !here && meta.Kind != thread.KindTool && !c.canServe(meta.Model) {
		slots = 0
	}
	if slots > 0 {
		if err := c.Threads.HasWorkspace(ctx, meta); err != nil && here {
			return thread.Record{}, err
		} else if err != nil {
			slots = 0
		}
	}
	rec, err := c.Threads.Store.Enqueue(ctx, meta.ThreadID, slots, c.Threads.Now())
	if err == nil {
		c.Threads.Crashpoints.At(CrashQueued)
	}
	return rec, err
}

// Dispatch makes the attempts that are due. It puts the entries of sets that are next in
// the queue. Then it starts what is queued, in the order of [store.Queue.Admit], for as
// long as slots are free. Any process of the project may call it, at any time: the
// registry decides which of them gets a thread.
//
// A process that frees a slot calls it, so that no process has to be there only to move
// the queue: a thread's process when the thread has ended or begins to wait for
// others, and the starter that has settled a dead thread of its own. Beside those, a
// start that had to be queued, every wait for a thread in the queue, and
// [Scheduler.Run].
func (c *Scheduler) Dispatch(ctx context.Context) error {
	load, err := c.Threads.Store.QueueLoad(ctx)
	if err != nil {
		return err
	}
	return c.dispatch(ctx, load)
}

// dispatch is Dispatch by a load of the queue that was just read. No more threads are started
// than were queued: a caller that puts another there looks at the queue then.
func (c *Scheduler) dispatch(ctx context.Context, load store.QueueLoad) (err error) {
	c.nextRetry.Store(0)
	if load.Queued == 0 && load.Sets == 0 && load.Retries == 0 {
		return nil
	}
	now := c.begin()
	before := c.refill(ctx, now, load)
	if load.Sets > 0 || load.Retries > 0 {
		if load, err = c.Threads.Store.QueueLoad(ctx); err != nil || load.Queued == 0 {
			return errors.Join(before, err)
		}
	}
	d := &dispatch{Call: now, slots: now.Slots(), fits: map[string]bool{}}
	if load.Occupied >= d.slots {
		return before
	}
	for range load.Queued {
		more, err := d.startNext(ctx)
		if err != nil || !more {
			return errors.Join(before, err)
		}
	}
	return before
}

// refill puts in the queue what is due: other attempts of threads that have failed, and
// the entries of sets that are next.
func (c *Scheduler) refill(ctx context.Context, now *Call, load store.QueueLoad) (err error) {
	if load.Retries > 0 && c.Retries != nil {
		var next time.Time
		if next, err = c.Retries(ctx, now.Call); !next.IsZero() {
			c.nextRetry.Store(next.UnixMilli())
		}
	}
	if load.Sets > 0 && c.Sets != nil {
		err = errors.Join(err, c.Sets(ctx, now.Call))
	}
	return err
}

// UntilRetry fires when the next attempt is due that the last pass over the queue has
// seen, where that is sooner than somebody looks anyway; else it is nil.
func (c *Scheduler) UntilRetry() <-chan time.Time {
	at := c.nextRetry.Load()
	left := time.UnixMilli(at).Sub(c.Threads.Now())
	if at == 0 || left <= 0 || left > dispatchEvery {
		return nil
	}
	return time.After(left)
}

// dispatch is one pass over the queue.
type dispatch struct {
	*Call
	slots int
	fits  map[string]bool // models, and whether this process can run threads of them
}

// startNext gives a slot to the first thread in the queue that this process can run,
// and starts it. More is false when there is no slot or no such thread.
func (d *dispatch) startNext(ctx context.Context) (more bool, err error) {
	done, room := d.Threads.Room(ctx)
	if !room {
		return false, nil
	}
	defer done()
	rec, hold, err := d.admit(ctx)
	if err != nil || hold == nil {
		return false, err
	}
	// The thread has its slot: the caller going away must not leave it there.
	d.launchAdmitted(context.WithoutCancel(ctx), rec, hold)
	return true, nil
}

// admit takes the first thread in the queue that this process can run, by another run
// and with the life of that; it is nil when there is none. Several may have claimed a
// life of one thread; the store decides which run it has.
func (d *dispatch) admit(ctx context.Context) (rec thread.Record, hold life.Hold, err error) {
	run, done := d.Threads.NewRun()
	defer done()
	var taken claim
	rec, admitted, err := store.Admit(ctx, d.Threads.Store, d.slots, d.Threads.Now(), run, func(r thread.Record) (err error) {
		if !d.canRun(r) || !d.accepts(ctx, r) {
			return store.ErrTaken
		}
		taken.giveUp() // another has admitted that one
		if taken, err = d.takeLife(life.Key{Thread: r.ThreadID, Run: run}); err != nil {
			return store.ErrTaken
		}
		d.Threads.Crashpoints.At(CrashTaken)
		return nil
	})
	if err == nil && admitted {
		d.Threads.Crashpoints.At(CrashAdmitted)
		return rec, taken.hold, nil
	}
	taken.giveUp()
	return rec, nil, err
}

// errFound ends a look through the queue.
var errFound = errors.New("found")

// Takes reports whether a thread is queued that this process can run.
func (c *Scheduler) Takes(ctx context.Context) (bool, error) {
	load, err := c.Threads.Store.QueueLoad(ctx)
	if err != nil || load.Queued == 0 {
		return false, err
	}
	d := &dispatch{Call: c.begin(), fits: map[string]bool{}}
	err = store.EachRow(ctx, c.Threads.Store, []thread.State{thread.Created}, func(rec thread.Record) error {
		if rec.Queued() && d.canRun(rec) && d.accepts(ctx, rec) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// mostRetrying is how many threads are looked at that are to be tried again.
const mostRetrying = 1000

// Retrying are the threads that are to be tried again, now or later, and that this process can
// run.
func (c *Scheduler) Retrying(ctx context.Context) ([]thread.Record, error) {
	load, err := c.Threads.Store.QueueLoad(ctx)
	if err != nil || load.Retries == 0 {
		return nil, err
	}
	ever := c.Threads.Now().Add(2 * thread.MaxRetryGap)
	retries, _, err := c.Threads.Store.DueRetries(ctx, ever, mostRetrying)
	d := &dispatch{Call: c.begin(), fits: map[string]bool{}}
	return slices.DeleteFunc(retries, func(rec thread.Record) bool { return !d.canRun(rec) }), err
}

// canRun is canServe, asked once for each model.
func (d *dispatch) canRun(rec thread.Record) bool {
	if rec.Kind == thread.KindTool {
		return true
	}
	fits, known := d.fits[rec.Model]
	if !known {
		fits = d.canServe(rec.Model)
		d.fits[rec.Model] = fits
	}
	return fits
}

// accepts reports whether a thread of a fleet may go by the settings of this machine, and
// works in a workspace that this machine has or can make. Settings that its user has not
// accepted, or has beside those of its start, leave it to another.
func (d *dispatch) accepts(ctx context.Context, rec thread.Record) bool {
	if d.Threads.Fleet == nil {
		return true
	}
	meta, err := d.Threads.OwnMeta(rec.ThreadID)
	if err != nil {
		return true // its own process says what is wrong with thread.json
	}
	if err = d.Threads.HasWorkspace(ctx, meta); err == nil && !d.Accepts(meta.Accepted) {
		err = threads.ErrOtherSettings
	}
	if err == nil {
		return true
	}
	d.note(zerolog.WarnLevel, rec.ThreadID, err, "left a queued thread to another machine")
	return false
}

// canServe reports whether the process of a thread, which gets the environment of
// this one, can talk to the thread's provider. A key that only the thread's
// starter has leaves the thread to that one; on a fleet so do settings of the provider.
// The thread itself finds out, and says, what else may be wrong with the model.
func (c *Call) canServe(model string) bool {
	if c.Threads.Fleet != nil {
		provider, _, _ := strings.Cut(model, "/")
		return c.Providers.CanServe(model) && (c.Able == nil || c.Able(provider))
	}
	return !c.Providers.LacksKey(model)
}

// takeLife takes the life of a thread in the queue. A folder that cannot be used
// keeps nobody else from running: the thread is passed over.
func (d *dispatch) takeLife(k life.Key) (claim, error) {
	place := d.Threads.Records.Of(k.Thread)
	if err := place.Prepare(); err != nil {
		d.complain(k.Thread, err, "a queued thread has no usable folder")
		return claim{}, err
	}
	hold, err := d.Threads.Life.Claim(k)
	if err != nil {
		d.complain(k.Thread, err, "could not lock a queued thread")
	}
	return claim{place, hold}, err
}

// launchAdmitted starts the process of a thread that has a slot, and lets go of
// its life. One that cannot be started has failed, as if it had not been queued.
func (d *dispatch) launchAdmitted(ctx context.Context, rec thread.Record, hold life.Hold) {
	defer func() { _ = hold.Release() }()
	items, err := d.resealSettings(rec)
	if err == nil { // one with secrets never was queued: see CheckSlot
		_, err = d.LaunchProcess(ctx, rec, hold, Given{Items: items, Queued: true})
	}
	if err != nil {
		_ = d.Abandon(ctx, rec, err) // recorded as the thread's outcome
	}
}

// resealSettings is [settings.Call.Seal] for a thread that has been queued: its process
// goes by the settings as they are now. One whose thread.json cannot be used its own
// process refuses. It returns the snapshot of the items that the thread works by.
func (c *Call) resealSettings(rec thread.Record) (items string, err error) {
	meta, unusable := c.Threads.OwnMeta(rec.ThreadID)
	if unusable != nil {
		return "", nil //nolint:nilerr // its own process says so
	}
	before := meta.SettingsHash
	if c.Seal(&meta); meta.SettingsHash != before {
		err = c.Threads.Records.By(rec.ThreadID, rec.Run).Meta().Write(meta)
	}
	return meta.Snapshot, err
}
