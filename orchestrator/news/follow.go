package news

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Event is what somebody who follows a project is told: ids and numbers, no word of
// what a thread wrote.
type Event struct {
	Event    thread.NewsKind `json:"event"` // ended or asked
	ThreadID thread.ID       `json:"thread_id"`
	// ResolvedThreadID is the thread that has ended, where it continues ThreadID.
	ResolvedThreadID thread.ID    `json:"resolved_thread_id,omitempty"`
	ParentID         thread.ID    `json:"parent_id,omitempty"`
	Directive        string       `json:"directive"`
	Status           thread.State `json:"status"`
	QuestionID       string       `json:"question_id,omitempty"`
	Cost             thread.Cost  `json:"cost"`
	At               time.Time    `json:"at"`
}

// Following chooses what is told.
type Following struct {
	Since time.Time // zero: from now on
	// Of are the processes whose threads count; nil: all threads. News that an answer has
	// told such a process, or is about to tell, is left out.
	Of func(thread.Process) bool
	// Settle leaves time for that answer; nil: half a second.
	Settle   func(context.Context) error
	Children bool // the ends of threads that a thread has started, too
	// Appears is told when the store may have come to be, see [place.Finder.Appears]; nil
	// where there is one.
	Appears <-chan struct{}
}

// settles is how long somebody is left to tell a client what has become of its threads
// by an answer, before a model is woken for it: a turn of a model costs money.
const settles = 500 * time.Millisecond

// pageOfNews is how many news are read at a time.
const pageOfNews = 500

// Follow tells each event, in order, until ctx ends, which is no error, or see returns
// one. It is woken by commits, and by the end of a process, which it settles then.
func (d *Desk) Follow(ctx context.Context, f Following, see func(Event) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changes := d.Threads.Store.Milestones(ctx)
	exits := d.Threads.NewExitWatcher(ctx)
	at, err := d.begin(ctx, f)
	if err != nil {
		return quiet(ctx, err)
	}
	for {
		if err = d.tellSince(ctx, &at, f, see); err == nil {
			err = d.watchActive(ctx, exits)
		}
		if err != nil {
			return quiet(ctx, err)
		}
		select {
		case <-changes:
		case <-f.Appears:
		case <-exits.Seen:
			d.settleDead(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// Await returns what some clients are to be told, as soon as there is something, and
// counts it as told. When none of their threads works any more it returns nothing.
func (d *Desk) Await(ctx context.Context, keys []string) ([]Event, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changes := d.Threads.Store.Milestones(ctx)
	exits := d.Threads.NewExitWatcher(ctx)
	for {
		if due, err := d.isDue(ctx, keys); err != nil {
			return nil, quiet(ctx, err)
		} else if due && settle(ctx) != nil {
			return nil, nil
		}
		events, works, err := d.take(ctx, keys)
		if err == nil && works && len(events) == 0 {
			err = d.watchActive(ctx, exits)
		}
		if err != nil || len(events) > 0 || !works {
			return events, quiet(ctx, err)
		}
		select {
		case <-changes:
		case <-exits.Seen:
			d.settleDead(ctx)
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// isDue reports whether some clients are to be told something.
func (d *Desk) isDue(ctx context.Context, keys []string) (bool, error) {
	for _, key := range keys {
		if due, err := d.Threads.Store.Untold(ctx, key); err != nil || len(due) > 0 {
			return true, err
		}
	}
	return false, nil
}

// take returns what some clients are to be told, which counts as told then, and whether
// threads of theirs work.
func (d *Desk) take(ctx context.Context, keys []string) (events []Event, works bool, err error) {
	for _, key := range keys {
		busy, err := d.Threads.Store.Works(ctx, key) // before: a thread that ends meanwhile is found below
		if err != nil {
			return nil, false, err
		}
		works = works || busy
		due, err := d.Threads.Store.Untold(ctx, key)
		if err != nil {
			return nil, false, err
		}
		var told []int64
		for _, n := range due {
			e, wanted, err := d.eventOf(ctx, n, Following{})
			if err != nil {
				return nil, false, err
			}
			if wanted {
				events = append(events, e)
			}
			told = append(told, n.Seq)
		}
		if len(told) > 0 {
			err = d.Threads.Store.Tell(ctx, told)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return events, works, nil
}

func (d *Desk) settleDead(ctx context.Context) {
	if _, err := d.Threads.Sweep(ctx); err != nil && ctx.Err() == nil {
		d.Threads.Log.Warn().Err(err).Msg("could not settle every thread whose process is gone")
	}
}

// quiet is no error when ctx has ended.
func quiet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the failed call was interrupted
	}
	return err
}

// begin is the place behind which news are told.
func (d *Desk) begin(ctx context.Context, f Following) (store.Place, error) {
	if f.Since.IsZero() {
		return store.LatestPlace(ctx, d.Threads.Store)
	}
	return store.Place{}, nil
}

// tellSince tells what has come to pass behind a place, which moves on.
func (d *Desk) tellSince(ctx context.Context, at *store.Place, f Following, see func(Event) error) error {
	for {
		page, more, err := d.page(ctx, at, f)
		if err != nil {
			return err
		}
		for _, n := range page {
			at.Pass(n)
			e, wanted, err := d.eventOf(ctx, n, f)
			if err == nil && wanted {
				err = see(e)
			}
			if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// page is what has come to pass behind a place. For a client it is read when there was
// time to tell it by an answer.
func (d *Desk) page(ctx context.Context, at *store.Place, f Following) (page []thread.News, more bool, err error) {
	page, more, err = at.Read(ctx, d.Threads.Store, pageOfNews)
	if err != nil || f.Of == nil || len(page) == 0 {
		return page, more, err
	}
	wait := settle
	if f.Settle != nil {
		wait = f.Settle
	}
	if err := wait(ctx); err != nil {
		return nil, false, err
	}
	most := len(page)
	page, _, err = at.Read(ctx, d.Threads.Store, most)
	return page, true, err // news that came meanwhile has its own time
}

func settle(ctx context.Context) error {
	timer := time.NewTimer(settles)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// eventOf is what is told of one piece of news, if anything. A thread that was deleted
// meanwhile is no news.
func (d *Desk) eventOf(ctx context.Context, n thread.News, f Following) (e Event, wanted bool, err error) {
	if n.Kind == thread.Budget80 || n.At.Before(f.Since) || f.Of != nil && (n.Told || !isOf(n.Origin, f.Of)) {
		return e, false, nil
	}
	rec, err := d.Threads.Store.Get(ctx, n.ThreadID)
	if errors.Is(err, thread.ErrNotFound) {
		return e, false, nil
	}
	if err != nil || n.Kind == thread.Ended && rec.ParentID != "" && !f.Children {
		return e, false, err
	}
	known, err := d.entryOf(ctx, n)
	if err != nil {
		return e, false, err
	}
	e = Event{
		Event: n.Kind, ThreadID: thread.ID(known.id), ParentID: rec.ParentID, Directive: rec.Directive, Status: rec.Status,
		QuestionID: n.QuestionID, Cost: rec.Cost, At: n.At,
	}
	if e.ThreadID != n.ThreadID {
		e.ResolvedThreadID = n.ThreadID
	}
	return e, true, nil
}

// isOf reports whether a thread was started for one of some processes.
func isOf(origin string, of func(thread.Process) bool) bool {
	var c Client
	return origin != "" && json.Unmarshal([]byte(origin), &c) == nil && of(c.Process)
}

// watchActive watches the processes of all threads that work.
func (d *Desk) watchActive(ctx context.Context, exits *threads.ExitWatcher) error {
	active := map[thread.ID]thread.Record{}
	err := store.EachRow(ctx, d.Threads.Store, []thread.State{thread.Created, thread.Running}, func(rec thread.Record) error {
		active[rec.ThreadID] = rec
		return nil
	})
	exits.Watch(active)
	return err
}
