package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var retryTests = []test{
	{"a failed thread is due when its outcome says", retryDue},
	{"an outcome says of a stopped thread nothing", retryOfStopped},
	{"a cancel takes retries back, below it too", retryCancelled},
	{"a clock that was set back waits no year", retryClock},
	{"a dropped retry is dropped once, and says why", retryDropped},
	{"one attempt alone continues a thread", retryOnce},
	{"one attempt alone is made", retryRivals},
	{"an attempt is no further child", retryNoSpawn},
	{"a resume takes the retry's place", retryResumed},
	{"a set goes on while an entry is to be tried again", retryOfEntry},
	{"a thread that is tried again has not ended", retryNews},
	{"what is to be tried again is not expired", retryKept},
}

// retriedThread is a thread below a parent, which may be empty, that has failed and is due so
// much later.
func retriedThread(h *harness, parent thread.ID, wait time.Duration) thread.ID {
	h.Helper()
	id := h.running("d", parent)
	h.apply(failedChange(h, id, wait))
	return id
}

// failedChange is the end of a thread that is tried again so much later.
func failedChange(h *harness, id thread.ID, wait time.Duration) store.Change {
	h.Helper()
	c, err := store.Finished(id, thread.Outcome{
		State: thread.Error, Error: &thread.Problem{Code: "provider_transient", Message: "down", Passing: true},
		Retry: &thread.Retry{At: h.now.Add(wait), Attempt: 2, Attempts: 3},
	}, nil, h.now)
	h.noError(err)
	return c
}

func wantDue(h *harness, at time.Time, next time.Time, want ...thread.ID) {
	h.Helper()
	due, then, err := h.DueRetries(h.ctx, at, 10)
	h.noError(err)
	ids := make([]thread.ID, len(due))
	for i, rec := range due {
		ids[i] = rec.ThreadID
	}
	if !slices.Equal(ids, want) || !then.Equal(next) {
		h.Errorf("due at %v: %q, next %v; want %q, next %v", at, ids, then, want, next)
	}
}

func retryDue(h *harness) {
	wantDue(h, h.now, time.Time{})
	late, soon := retriedThread(h, "", time.Hour), retriedThread(h, "", time.Minute)
	h.inState(thread.Error)
	if rec := h.get(soon); !rec.AwaitsRetry() || !rec.RetryAt.Equal(h.now.Add(time.Minute)) || rec.Over() || rec.Status != thread.Error {
		h.Errorf("the row: %+v", rec)
	}
	wantDue(h, h.now, h.now.Add(time.Minute))
	wantDue(h, h.now.Add(time.Minute), h.now.Add(time.Hour), soon)
	wantDue(h, h.now.Add(time.Hour), time.Time{}, soon, late)
	if load, err := h.QueueLoad(h.ctx); err != nil || load.Retries != 2 {
		h.Errorf("load %+v, %v", load, err)
	}
	if due, _, err := h.DueRetries(h.ctx, h.now.Add(time.Hour), 1); err != nil || len(due) != 1 {
		h.Errorf("one at most: %v, %v", due, err)
	}
}

func retryOfStopped(h *harness) {
	id := h.running("d", "")
	_, err := h.RequestCancel(h.ctx, id, "", h.now)
	h.noError(err)
	h.apply(failedChange(h, id, time.Minute))
	if rec := h.get(id); rec.AwaitsRetry() || !rec.Over() {
		h.Errorf("it is due at %v", rec.RetryAt)
	}
}

func retryCancelled(h *harness) {
	root := h.running("d", "")
	child := h.running("d", root)
	below, other := retriedThread(h, child, time.Minute), retriedThread(h, "", time.Minute)
	h.end(child, thread.Completed)
	_, err := h.RequestCancel(h.ctx, root, "", h.now)
	h.noError(err)
	if rec := h.get(below); rec.AwaitsRetry() || rec.RetryNote == "" || rec.Status != thread.Error {
		h.Errorf("below: %+v", rec)
	}
	_, err = h.RequestCancel(h.ctx, other, "", h.now)
	h.noError(err)
	wantDue(h, h.now.Add(time.Hour), time.Time{})
	for _, id := range []thread.ID{below, other} {
		if _, _, err := h.Register(h.ctx, attemptOf(h, id, ""), claimNothing); !errors.Is(err, store.ErrNoRetry) {
			h.Errorf("an attempt for %s: %v", id, err)
		}
	}
}

func retryClock(h *harness) {
	id := retriedThread(h, "", time.Hour)
	wantDue(h, h.now.Add(-store.RetrySkew), h.now.Add(time.Hour))
	wantDue(h, h.now.AddDate(-1, 0, 0), time.Time{}, id)
	wantDue(h, h.now.AddDate(1, 0, 0), time.Time{}, id)
}

func retryDropped(h *harness) {
	id := retriedThread(h, "", time.Minute)
	for i, want := range []bool{true, false} {
		if dropped, err := h.DropRetry(h.ctx, id, "its directive is gone", h.now); err != nil || dropped != want {
			h.Errorf("%d: dropped %v, %v", i, dropped, err)
		}
	}
	if rec := h.get(id); rec.AwaitsRetry() || rec.RetryNote != "its directive is gone" {
		h.Errorf("the row: %+v", rec)
	}
	if dropped, err := h.DropRetry(h.ctx, "nobody", "x", h.now); err != nil || dropped {
		h.Errorf("an unknown thread: %v, %v", dropped, err)
	}
}

// attemptOf is the registration of another attempt.
func attemptOf(h *harness, of, parent thread.ID) store.NewThread {
	n := h.newThread("d", parent)
	n.ContinuationOf, n.Retry, n.MaxSpawns = of, true, 0
	return n
}

// retryRivals: of several who make an attempt one alone registers a thread, until that is
// settled without having been linked, as of one whose maker is dead.
func retryRivals(h *harness) {
	id := retriedThread(h, "", time.Minute)
	const callers = 4
	made, errs := make([]thread.ID, callers), make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			rec, _, err := h.Register(h.ctx, attemptOf(h, id, ""), claimNothing)
			made[i], errs[i] = rec.ThreadID, err
		})
	}
	all.Wait()
	var first thread.ID
	for i, err := range errs {
		if err == nil && first == "" {
			first = made[i]
		}
	}
	for i, err := range errs {
		rival, is := errors.AsType[*store.AttemptedError](err)
		if made[i] != first && (!is || *rival != store.AttemptedError{Thread: id, By: first} || !errors.Is(err, store.ErrNoRetry)) {
			h.Errorf("of several attempts %s is the first, and another: %q, %v", first, made[i], err)
		}
	}
	h.end(first, thread.Cancelled)
	rec, _, err := h.Register(h.ctx, attemptOf(h, id, ""), claimNothing)
	h.noError(err)
	h.noError(h.Link(h.ctx, id, rec.ThreadID, h.now))
}

func retryOnce(h *harness) {
	id := retriedThread(h, "", time.Minute)
	const callers = 4 // all but the first are others that resume it
	linked := make([]error, callers)
	next := make([]thread.ID, callers)
	var all sync.WaitGroup
	for i := range callers {
		n := attemptOf(h, id, "")
		n.Retry = i == 0
		rec, _, err := h.Register(h.ctx, n, claimNothing)
		h.noError(err)
		next[i] = rec.ThreadID
	}
	for i := range callers {
		all.Go(func() { linked[i] = h.Link(h.ctx, id, next[i], h.now) })
	}
	all.Wait()
	won := 0
	for i, err := range linked {
		other, isLinked := errors.AsType[*store.LinkedError](err)
		switch rec := h.get(id); {
		case err == nil && rec.ContinuationThreadID == next[i]:
			won++
		case !isLinked || other.By != rec.ContinuationThreadID:
			h.Errorf("link %d: %v", i, err)
		}
	}
	if rec := h.get(id); won != 1 || rec.AwaitsRetry() || rec.RetryNote != "" {
		h.Errorf("%d attempts continue it: %+v", won, rec)
	}
	if _, _, err := h.Register(h.ctx, attemptOf(h, id, ""), claimNothing); err == nil {
		h.Error("another attempt was registered after that")
	}
	wantDue(h, h.now.Add(time.Hour), time.Time{})
}

func retryNoSpawn(h *harness) {
	root := h.begun("d", "", editor)
	child := retriedThread(h, root, time.Minute)
	before := h.get(root).SpawnCount
	h.end(root, thread.Completed)
	rec, _, err := h.Register(h.ctx, attemptOf(h, child, root), claimNothing)
	h.noError(err)
	if now := h.get(root).SpawnCount; now != before || rec.ParentID != root || rec.ContinuationOf != child {
		h.Errorf("%d children, were %d; the attempt: %+v", now, before, rec)
	}
	for _, n := range []store.NewThread{{Kind: thread.KindDirective, Directive: "d", Now: h.now, Retry: true}, func() store.NewThread {
		n := attemptOf(h, child, root)
		n.Handoff = true
		return n
	}()} {
		if _, _, err := h.Register(h.ctx, n, claimNothing); err == nil {
			h.Errorf("registered: %+v", n)
		}
	}
	if _, _, err := h.Register(h.ctx, attemptOf(h, h.inState(thread.Error), ""), claimNothing); !errors.Is(err, store.ErrNoRetry) {
		h.Errorf("an attempt for a thread that is not due: %v", err)
	}
}

func retryResumed(h *harness) {
	id := retriedThread(h, "", time.Minute)
	n := h.newThread("d", "")
	n.ContinuationOf = id
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	h.noError(h.Link(h.ctx, id, rec.ThreadID, h.now))
	if h.get(id).AwaitsRetry() {
		h.Error("it is still due")
	}
}

func retryOfEntry(h *harness) {
	set := h.set("scope", "content", 2, "a", "b")
	first := h.entry(set, 0)
	h.apply(failedChange(h, first, time.Minute))
	if got, err := h.Set(h.ctx, set); err != nil || got.Working != 0 || got.Retrying != 1 || got.Waiting != 1 {
		h.Errorf("the set: %+v, %v", got, err)
	}
	if e := h.entries(set)[0]; !e.Retries || e.Over() || e.Status != thread.Error {
		h.Errorf("the entry: %+v", e)
	}
	rec, _, err := h.Register(h.ctx, attemptOf(h, first, set), claimNothing)
	h.noError(err)
	h.noError(h.Link(h.ctx, first, rec.ThreadID, h.now))
	if got, err := h.Set(h.ctx, set); err != nil || got.Working != 1 || got.Retrying != 0 {
		h.Errorf("the set after: %+v, %v", got, err)
	}
	if e := h.entries(set)[0]; e.Thread != first || e.Last != rec.ThreadID || e.Status != thread.Created || e.Retries {
		h.Errorf("the entry: %+v", e)
	}
}

func retryNews(h *harness) {
	kept, dropped, stopped := h.begun("d", "", editor), h.begun("d", "", editor), h.begun("d", "", editor)
	for _, id := range []thread.ID{kept, dropped, stopped} {
		h.apply(failedChange(h, id, time.Minute))
	}
	h.wantUntold(editor.Key)
	_, err := h.DropRetry(h.ctx, dropped, "no key", h.now)
	h.noError(err)
	rec, _, err := h.Register(h.ctx, attemptOf(h, kept, ""), claimNothing)
	h.noError(err)
	h.noError(h.Link(h.ctx, kept, rec.ThreadID, h.now))
	h.wantUntold(editor.Key, "ended "+string(dropped))
	_, err = h.RequestCancel(h.ctx, stopped, "", h.now)
	h.noError(err)
	h.wantUntold(editor.Key, "ended "+string(dropped), "ended "+string(stopped))
}

func retryKept(h *harness) {
	id := retriedThread(h, "", time.Minute)
	later := h.now.AddDate(1, 0, 0)
	rows, err := h.Expired(h.ctx, store.Expiry{UsedUntil: later})
	if h.noError(err); len(rows) != 0 {
		h.Errorf("expired: %v", rows)
	}
	_, err = h.DropRetry(h.ctx, id, "x", h.now)
	h.noError(err)
	rows, err = h.Expired(h.ctx, store.Expiry{UsedUntil: later})
	if h.noError(err); len(rows) != 1 {
		h.Errorf("expired after it was dropped: %v", rows)
	}
}
