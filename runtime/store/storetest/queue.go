package storetest

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var queueTests = []test{
	{"the first to come is admitted first", queueOrder},
	{"a claim may take its time and use the store", queueSlowClaim},
	{"children go before the others", queueChildren},
	{"a thread whose parent has ended goes like the others", queueOrphans},
	{"a free slot is had at once", queueAtOnce},
	{"a child goes at once past the others", queueChildAtOnce},
	{"a repeat changes nothing", queueRepeat},
	{"only created threads are queued", queueGuard},
	{"a thread that was asked to stop is passed over", queueCancelled},
	{"claim decides about the next", queueClaim},
	{"what gives a slot back", queueFreed},
	{"a thread that takes its slot back keeps others out", queueUnyield},
	{"many at once stay in order and in the slots", queueAtTheSameTime},
	{"random queues agree with the model", queueModel},
}

func claimRecord(thread.Record) error { return nil }

// enqueued registers a thread and puts it in the queue for one of slots.
func (h *harness) enqueued(slots int) thread.Record {
	h.Helper()
	return h.enqueuedChild("", slots)
}

// enqueuedChild registers a thread below parent and puts it in the queue.
func (h *harness) enqueuedChild(parent thread.ID, slots int) thread.Record {
	h.Helper()
	rec, err := h.Enqueue(h.ctx, h.register("d", parent), slots, h.now.Add(time.Second))
	h.noError(err)
	return rec
}

// admit returns who was admitted, or nobody.
func (h *harness) admit(slots int) thread.ID {
	h.Helper()
	rec, admitted, err := h.Admit(h.ctx, slots, h.now.Add(2*time.Second), claimRecord)
	h.noError(err)
	if admitted != (rec.ThreadID != "") {
		h.Errorf("admitted %v, row %+v", admitted, rec)
	}
	return rec.ThreadID
}

// wantLoad compares the counts.
func (h *harness) wantLoad(occupied, queued int) {
	h.Helper()
	got, err := h.QueueLoad(h.ctx)
	h.noError(err)
	if want := (store.QueueLoad{Occupied: occupied, Queued: queued}); got != want {
		h.Errorf("load %+v, want %+v", got, want)
	}
}

func queueOrder(h *harness) {
	var want, got []thread.ID
	for range 5 {
		want = append(want, h.enqueued(0).ThreadID)
	}
	h.wantLoad(0, 5)
	for range 5 {
		got = append(got, h.admit(5))
	}
	if !slices.Equal(got, want) {
		h.Errorf("admitted %v, want %v", got, want)
	}
	h.wantLoad(5, 0)
	if id := h.admit(6); id != "" {
		h.Errorf("admitted %s, who was not in the queue", id)
	}
}

// wantAdmitted admits as many as are wanted, and compares who they are.
func (h *harness) wantAdmitted(want ...thread.ID) {
	h.Helper()
	var got []thread.ID
	for range want {
		got = append(got, h.admit(1000))
	}
	if !slices.Equal(got, want) {
		h.Errorf("admitted %v\nwant %v", got, want)
	}
}

func queueChildren(h *harness) {
	one, two := h.running("parent", ""), h.running("parent", "")
	a, b := h.enqueued(0).ThreadID, h.enqueued(0).ThreadID
	first := h.enqueuedChild(one, 0).ThreadID
	second := h.enqueuedChild(two, 0).ThreadID
	c := h.enqueued(0).ThreadID
	third := h.enqueuedChild(one, 0).ThreadID
	h.wantLoad(0, 6)
	h.wantAdmitted(first, second)
	_, err := h.Return(h.ctx, first)
	h.noError(err)
	var offered []thread.ID
	rec, admitted, err := h.Admit(h.ctx, 1000, h.now, func(rec thread.Record) error {
		offered = append(offered, rec.ThreadID)
		if len(offered) < 5 {
			return store.ErrTaken
		}
		return nil
	})
	h.noError(err)
	if want := []thread.ID{first, third, a, b, c}; !admitted || rec.ThreadID != c || !slices.Equal(offered, want) {
		h.Errorf("admitted %s, offered %v\nwant %v", rec.ThreadID, offered, want)
	}
	h.wantAdmitted(first, third, a, b, "")
}

func queueOrphans(h *harness) {
	ended, handsOver := h.running("parent", ""), h.running("parent", "")
	next := h.successor(handsOver, true)
	orphan := h.enqueuedChild(ended, 0).ThreadID
	a := h.enqueued(0).ThreadID
	late := h.enqueuedChild(ended, 0).ThreadID
	waitedFor := h.enqueuedChild(handsOver, 0).ThreadID
	h.apply(h.finished(ended, thread.Completed))
	h.apply(h.continued(handsOver, next))
	h.wantAdmitted(waitedFor, orphan, a, late)
}

func queueChildAtOnce(h *harness) {
	parent := h.running("parent", "")
	holder, other := h.enqueued(1).ThreadID, h.enqueued(1).ThreadID
	if full := h.enqueuedChild(parent, 1); !full.Queued() {
		h.Errorf("without a free slot: %+v", full)
	} else if second := h.enqueuedChild(parent, 2); !second.Queued() {
		h.Errorf("went past %s: %+v", full.ThreadID, second)
	}
	h.admit(1000)
	h.admit(1000)
	h.apply(h.finished(holder, thread.Error))
	h.wantLoad(2, 1)
	if past := h.enqueuedChild(parent, 3); past.Queued() {
		h.Errorf("stands behind %s: %+v", other, past)
	}
	h.wantLoad(3, 1)
	if root := h.enqueued(4); !root.Queued() {
		h.Errorf("went past %s: %+v", other, root)
	}
	h.wantAdmitted(other)
}

func queueAtOnce(h *harness) {
	first, second := h.enqueued(1), h.enqueued(1)
	if first.Queued() || !first.AdmittedAt.Equal(h.now.Add(time.Second)) || !first.QueuedAt.Equal(first.AdmittedAt) {
		h.Errorf("with a free slot: %+v", first)
	}
	if !second.Queued() || second.QueuedAt.IsZero() {
		h.Errorf("without a free slot: %+v", second)
	}
	if third := h.enqueued(5); !third.Queued() {
		h.Errorf("went past %s: %+v", second.ThreadID, third)
	}
	h.wantLoad(1, 2)
	if id := h.admit(1); id != "" {
		h.Errorf("admitted %s to a slot that is occupied", id)
	}
	if id := h.admit(2); id != second.ThreadID {
		h.Errorf("admitted %q, want %s", id, second.ThreadID)
	}
	if rec := h.get(second.ThreadID); rec.Queued() || !rec.AdmittedAt.Equal(h.now.Add(2*time.Second)) {
		h.Errorf("admitted row %+v", rec)
	}
}

func queueRepeat(h *harness) {
	waiting := h.enqueued(0)
	h.enqueued(0)
	again, err := h.Enqueue(h.ctx, waiting.ThreadID, 10, h.now.Add(time.Hour))
	h.noError(err)
	if !reflect.DeepEqual(again, waiting) {
		h.Errorf("again %+v\nwant  %+v", again, waiting)
	}
	if id := h.admit(1); id != waiting.ThreadID {
		h.Errorf("admitted %s, want %s, who came first", id, waiting.ThreadID)
	}
	admitted := h.get(waiting.ThreadID)
	again, err = h.Enqueue(h.ctx, waiting.ThreadID, 10, h.now.Add(time.Hour))
	h.noError(err)
	if !reflect.DeepEqual(again, admitted) {
		h.Errorf("again %+v\nwant  %+v", again, admitted)
	}
	h.wantLoad(1, 1)
}

func queueGuard(h *harness) {
	for _, s := range thread.States() {
		id := h.inState(s)
		_, err := h.Enqueue(h.ctx, id, 10, h.now)
		if (s == thread.Created) != (err == nil) || (err != nil && !errors.Is(err, thread.ErrSettled)) {
			h.Errorf("a %s thread in the queue: %v", s, err)
		}
		err = h.Yield(h.ctx, id, true)
		if (s == thread.Running) != (err == nil) || (err != nil && !errors.Is(err, thread.ErrSettled)) {
			h.Errorf("a %s thread yields: %v", s, err)
		}
	}
	if _, err := h.Enqueue(h.ctx, "no/such", 10, h.now); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("nobody in the queue: %v", err)
	}
	if err := h.Yield(h.ctx, "no/such", true); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("nobody yields: %v", err)
	}
}

func queueCancelled(h *harness) {
	first, second := h.enqueued(0), h.enqueued(0)
	_, err := h.RequestCancel(h.ctx, first.ThreadID, "", h.now)
	h.noError(err)
	h.wantLoad(0, 1)
	id := h.register("d", "")
	_, err = h.RequestCancel(h.ctx, id, "", h.now)
	h.noError(err)
	late, err := h.Enqueue(h.ctx, id, 10, h.now)
	h.noError(err)
	if !late.AdmittedAt.IsZero() {
		h.Errorf("admitted after a cancel: %+v", late)
	}
	if id := h.admit(10); id != second.ThreadID {
		h.Errorf("admitted %s, want %s", id, second.ThreadID)
	}
	if id := h.admit(10); id != "" {
		h.Errorf("admitted %s after a cancel", id)
	}
	h.apply(h.finished(first.ThreadID, thread.Cancelled))
	h.wantLoad(1, 0)
}

func queueClaim(h *harness) {
	first, second, third := h.enqueued(0).ThreadID, h.enqueued(0).ThreadID, h.enqueued(0).ThreadID
	var offered []thread.ID
	rec, admitted, err := h.Admit(h.ctx, 1, h.now, func(rec thread.Record) error {
		offered = append(offered, rec.ThreadID)
		if !rec.Queued() {
			h.Errorf("offered %+v", rec)
		}
		if len(offered) < 2 {
			return store.ErrTaken
		}
		return nil
	})
	h.noError(err)
	if !admitted || rec.ThreadID != second || !slices.Equal(offered, []thread.ID{first, second}) {
		h.Errorf("offered %v, admitted %s", offered, rec.ThreadID)
	}
	errLock := errors.New("no lock")
	if _, admitted, err := h.Admit(h.ctx, 2, h.now, func(thread.Record) error { return errLock }); admitted || !errors.Is(err, errLock) {
		h.Errorf("claim failed: admitted %v, %v", admitted, err)
	}
	if _, admitted, err := h.Admit(h.ctx, 3, h.now, func(thread.Record) error { return store.ErrTaken }); admitted || err != nil {
		h.Errorf("everyone taken: admitted %v, %v", admitted, err)
	}
	h.wantLoad(1, 2)
	if got := []thread.ID{h.admit(3), h.admit(3)}; !slices.Equal(got, []thread.ID{first, third}) {
		h.Errorf("then admitted %v", got)
	}
}

func queueFreed(h *harness) {
	for name, free := range map[string]func(id thread.ID){
		"yielded": func(id thread.ID) {
			h.apply(store.Claimed(id, thread.Process{PID: 1, Host: "h"}, h.now))
			h.noError(h.Yield(h.ctx, id, true))
			h.noError(h.Yield(h.ctx, id, true))
		},
		"ended": func(id thread.ID) {
			h.apply(store.Claimed(id, thread.Process{PID: 1, Host: "h"}, h.now))
			h.apply(h.finished(id, thread.Completed))
		},
		"died before it ran": func(id thread.ID) { h.apply(h.finished(id, thread.Error)) },
	} {
		holder := h.enqueued(1)
		next := h.enqueued(1)
		h.wantLoad(1, 1)
		free(holder.ThreadID)
		h.wantLoad(0, 1)
		if id := h.admit(1); id != next.ThreadID {
			h.Errorf("%s: admitted %q, want %s", name, id, next.ThreadID)
		}
		h.apply(h.finished(next.ThreadID, thread.Error))
	}
}

func queueUnyield(h *harness) {
	holder := h.enqueued(1).ThreadID
	h.apply(store.Claimed(holder, thread.Process{PID: 1, Host: "h"}, h.now))
	child, last := h.enqueued(1).ThreadID, h.enqueued(1).ThreadID
	h.noError(h.Yield(h.ctx, holder, true))
	if rec := h.get(holder); !rec.Yielded {
		h.Errorf("row %+v", rec)
	}
	h.admit(1)
	h.noError(h.Yield(h.ctx, holder, false))
	h.wantLoad(2, 1)
	if id := h.admit(2); id != "" {
		h.Errorf("admitted %s", id)
	}
	h.apply(h.finished(child, thread.Error))
	h.apply(h.finished(holder, thread.Completed))
	if id := h.admit(1); id != last {
		h.Errorf("admitted %q, want %s", id, last)
	}
}

// queueAtTheSameTime has many servers put threads in the queue, admit and end them.
// queueSlowClaim: who is faster has the thread, and the next is offered.
func queueSlowClaim(h *harness) {
	first, second := h.enqueued(0).ThreadID, h.enqueued(0).ThreadID
	var offered []thread.ID
	rec, admitted, err := h.Admit(h.ctx, 2, h.now, func(rec thread.Record) error {
		offered = append(offered, rec.ThreadID)
		if len(offered) == 1 {
			h.wantAdmitted(first)
		}
		return nil
	})
	if err != nil || !admitted || rec.ThreadID != second || !slices.Equal(offered, []thread.ID{first, second}) {
		h.Errorf("offered %v, admitted %s, %t, %v", offered, rec.ThreadID, admitted, err)
	}
}

func queueAtTheSameTime(h *harness) {
	const servers, each, slots = 4, 8, 3
	var mu sync.Mutex
	var order []thread.ID // of the first claim of each; a later one was in vain
	claim := func(rec thread.Record) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(order, rec.ThreadID) {
			order = append(order, rec.ThreadID)
		}
		return nil
	}
	queue := make([]thread.ID, servers*each)
	for i := range queue {
		queue[i] = h.enqueued(0).ThreadID
	}
	ended := make(chan struct{}, len(queue))
	for _, err := range atOnce(servers, func(int) error {
		for len(ended) < cap(ended) {
			rec, admitted, err := h.Admit(h.ctx, slots, h.now, claim)
			if err != nil {
				return err
			}
			load, err := h.QueueLoad(h.ctx)
			if err != nil {
				return err
			}
			if load.Occupied > slots {
				return errors.New("more threads than slots")
			}
			if !admitted {
				continue
			}
			if _, err := h.Apply(h.ctx, h.finished(rec.ThreadID, thread.Error)); err != nil {
				return err
			}
			ended <- struct{}{}
		}
		return nil
	}) {
		h.noError(err)
	}
	if !slices.Equal(order, queue) {
		h.Errorf("admitted %v\nwant %v", order, queue)
	}
	h.wantLoad(0, 0)
}
