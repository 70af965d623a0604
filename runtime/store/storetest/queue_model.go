package storetest

import (
	"errors"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// queueModel makes random queues by random operations and compares each answer
// with the queue as it is worded: a list of threads that wait and a set of those
// that occupy a slot. A run begins with what the one before left in the store, ended.
func queueModel(h *harness) {
	rapid.Check(h.T, func(t *rapid.T) {
		r := &queueRun{h: h, slots: rapid.IntRange(0, 3).Draw(t, "slots"), members: make(map[thread.ID]*member)}
		t.Repeat(map[string]func(*rapid.T){
			"register":  func(*rapid.T) { r.add(h.register("queue", ""), "") },
			"child":     r.child,
			"continue":  r.addSuccessor,
			"enqueue":   r.enqueue,
			"admit":     r.admit,
			"claim":     r.claim,
			"yield":     r.yield,
			"cancel":    r.cancel,
			"end":       r.end,
			"hand over": r.handOver,
			"link":      r.link,
			"":          r.compare,
		})
		for _, id := range r.known {
			if m := r.members[id]; !m.ended {
				h.apply(h.finished(id, thread.Error))
			}
		}
	})
}

type queueRun struct {
	h       *harness
	slots   int
	known   []thread.ID
	queue   []thread.ID // everybody who came to be queued, in that order
	members map[thread.ID]*member
}

type member struct {
	queued, admitted, running, yielded, cancelled, ended, handedOver bool

	parent thread.ID
	of     thread.ID // whom it is to continue
	next   thread.ID // who continues it
}

func (m *member) occupies() bool { return m.admitted && !m.yielded && !m.ended }
func (m *member) waits() bool {
	return m.queued && !m.admitted && !m.running && !m.cancelled && !m.ended
}

func (r *queueRun) add(id, parent thread.ID) *member {
	r.known = append(r.known, id)
	r.members[id] = &member{parent: parent}
	return r.members[id]
}

// early reports whether a thread goes before those that are not early.
func (r *queueRun) early(id thread.ID) bool {
	parent, has := r.members[r.members[id].parent]
	return has && (!parent.ended || parent.handedOver)
}

// waiting are the queued threads in the order of their admission.
func (r *queueRun) waiting() (all []thread.ID) {
	for _, early := range []bool{true, false} {
		for _, id := range r.queue {
			if r.members[id].waits() && r.early(id) == early {
				all = append(all, id)
			}
		}
	}
	return all
}

// linked reports whether a thread may run.
func (r *queueRun) linked(id thread.ID) bool {
	m := r.members[id]
	return m.of == "" || r.members[m.of].next == id
}

// pick draws a thread of this run, if there is one.
func (r *queueRun) pick(t *rapid.T) (thread.ID, *member) {
	if len(r.known) == 0 {
		t.Skip("no thread yet")
	}
	id := rapid.SampledFrom(r.known).Draw(t, "thread")
	return id, r.members[id]
}

func (r *queueRun) counts() (load store.QueueLoad) {
	for _, m := range r.members {
		if m.occupies() {
			load.Occupied++
		}
		if m.waits() {
			load.Queued++
		}
	}
	return load
}

// child registers a child of a thread, which must be running.
func (r *queueRun) child(t *rapid.T) {
	parent, m := r.pick(t)
	rec, _, err := r.h.Register(r.h.ctx, r.h.newThread("queue", parent), claimNothing)
	if allowed := m.running && !m.ended && !m.cancelled; allowed != (err == nil) || err != nil && !errors.Is(err, store.ErrParentGone) {
		t.Fatalf("child of %+v: %v", m, err)
	}
	if err == nil {
		r.add(rec.ThreadID, parent)
	}
}

// addSuccessor registers a thread to continue another.
func (r *queueRun) addSuccessor(t *rapid.T) {
	id, m := r.pick(t)
	handoff := rapid.Bool().Draw(t, "handoff")
	rec, _, err := r.h.Register(r.h.ctx, r.h.newSuccessor(id, handoff), claimNothing)
	predecessor, linked := new(store.PredecessorError), new(store.LinkedError)
	switch {
	case m.next != "":
		if !errors.As(err, &linked) || linked.By != m.next {
			t.Fatalf("continued by %s, and again: %v", m.next, err)
		}
	case handoff && (m.ended || !m.running || m.cancelled) || !handoff && !m.ended:
		if !errors.As(err, &predecessor) {
			t.Fatalf("continued by handoff %v: %+v, %v", handoff, m, err)
		}
	case err != nil:
		t.Fatal(err)
	case handoff:
		r.add(rec.ThreadID, m.parent).of = id
	default:
		r.add(rec.ThreadID, "").of = id
	}
}

// handOver ends a thread as continued by another, which has its slot then.
func (r *queueRun) handOver(t *rapid.T) {
	next, n := r.pick(t)
	id := n.of
	if id == "" {
		t.Skip("continues nobody")
	}
	m := r.members[id]
	_, err := r.h.Apply(r.h.ctx, r.h.continued(id, next))
	refused(t, err, m.running && !m.ended)
	if err != nil {
		return
	}
	m.ended, m.handedOver, m.next = true, true, next
	if !n.ended && !n.cancelled {
		n.queued, n.admitted = true, true
	}
}

func (r *queueRun) link(t *rapid.T) {
	next, n := r.pick(t)
	id := n.of
	if id == "" {
		t.Skip("continues nobody")
	}
	m := r.members[id]
	err := r.h.Link(r.h.ctx, id, next, r.h.now)
	predecessor, linked := new(store.PredecessorError), new(store.LinkedError)
	switch {
	case m.next != "" && m.next != next:
		if !errors.As(err, &linked) || linked.By != m.next {
			t.Fatalf("continued by %s, and again: %v", m.next, err)
		}
	case !m.ended:
		if !errors.As(err, &predecessor) {
			t.Fatalf("linked before its end: %v", err)
		}
	default:
		refused(t, err, m.next == next || !n.ended && !n.cancelled)
		if err == nil {
			m.next = next
		}
	}
}

// refused holds the store to refuse what leaves a state that a thread is not in.
func refused(t *rapid.T, err error, allowed bool) {
	if allowed != (err == nil) || (err != nil && !errors.Is(err, thread.ErrSettled)) {
		t.Fatalf("allowed %v, got %v", allowed, err)
	}
}

func (r *queueRun) enqueue(t *rapid.T) {
	id, m := r.pick(t)
	rec, err := r.h.Enqueue(r.h.ctx, id, r.slots, r.h.now)
	if !r.linked(id) && !m.ended {
		if !errors.Is(err, store.ErrNotLinked) {
			t.Fatalf("not linked and in the queue: %v", err)
		}
		return
	}
	refused(t, err, !m.running && !m.ended)
	if err != nil || m.queued {
		return
	}
	waiting := r.waiting()
	first := len(waiting) == 0 || r.early(id) && !r.early(waiting[0])
	m.admitted = first && r.counts().Occupied < r.slots && !m.cancelled
	m.queued = true
	if !m.admitted {
		r.queue = append(r.queue, id)
	}
	if rec.AdmittedAt.IsZero() == m.admitted {
		t.Fatalf("admitted %v, row %+v", m.admitted, rec)
	}
}

func (r *queueRun) admit(t *rapid.T) {
	waiting := r.waiting()
	taken := rapid.IntRange(0, 3).Draw(t, "taken")
	var want thread.ID
	if r.counts().Occupied < r.slots && taken < len(waiting) {
		want = waiting[taken]
	}
	offered := 0
	rec, admitted, err := r.h.Admit(r.h.ctx, r.slots, r.h.now, func(thread.Record) error {
		if offered++; offered <= taken {
			return store.ErrTaken
		}
		return nil
	})
	if err != nil || rec.ThreadID != want || admitted != (want != "") {
		t.Fatalf("admitted %v %q, %v; want %q of %v", admitted, rec.ThreadID, err, want, waiting)
	}
	if admitted {
		r.members[want].admitted = true
	}
}

func (r *queueRun) claim(t *rapid.T) {
	id, m := r.pick(t)
	_, err := r.h.Apply(r.h.ctx, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, r.h.now))
	refused(t, err, !m.running && !m.ended && !m.cancelled && r.linked(id))
	m.running = m.running || err == nil
}

func (r *queueRun) yield(t *rapid.T) {
	id, m := r.pick(t)
	yielded := rapid.Bool().Draw(t, "yielded")
	err := r.h.Yield(r.h.ctx, id, yielded)
	refused(t, err, m.running && !m.ended)
	if err == nil {
		m.yielded = yielded
	}
}

func (r *queueRun) cancel(t *rapid.T) {
	id, _ := r.pick(t)
	if _, err := r.h.RequestCancel(r.h.ctx, id, "", r.h.now); err != nil {
		t.Fatal(err)
	}
	r.mark(id)
}

// mark asks a thread to stop, its children, and all that are to continue it.
func (r *queueRun) mark(id thread.ID) {
	m := r.members[id]
	m.cancelled = m.cancelled || !m.ended
	for next, n := range r.members {
		if n.of == id || n.parent == id {
			r.mark(next)
		}
	}
}

func (r *queueRun) end(t *rapid.T) {
	id, m := r.pick(t)
	_, err := r.h.Apply(r.h.ctx, r.h.finished(id, thread.Error))
	refused(t, err, !m.ended)
	m.ended = true
}

func (r *queueRun) compare(t *rapid.T) {
	got, err := r.h.QueueLoad(r.h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.counts(); got != want {
		t.Fatalf("load %+v, want %+v", got, want)
	}
}
