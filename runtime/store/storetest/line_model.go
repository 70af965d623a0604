package storetest

import (
	"errors"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// lineModel makes random lines by random operations and compares each answer
// with the line as it is worded: a list of who waits and a set of who occupies
// a slot. A run begins with what the one before left in the store, ended.
func lineModel(h *harness) {
	rapid.Check(h.T, func(t *rapid.T) {
		r := &lineRun{h: h, slots: rapid.IntRange(0, 3).Draw(t, "slots"), members: make(map[thread.ID]*member)}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(*rapid.T) { r.add(h.register("line", "")) },
			"enqueue":  r.enqueue,
			"admit":    r.admit,
			"claim":    r.claim,
			"yield":    r.yield,
			"cancel":   r.cancel,
			"end":      r.end,
			"":         r.compare,
		})
		for _, id := range r.known {
			if m := r.members[id]; !m.ended {
				h.apply(h.finished(id, thread.Error))
			}
		}
	})
}

type lineRun struct {
	h       *harness
	slots   int
	known   []thread.ID
	line    []thread.ID // everybody who came to stand in line, in that order
	members map[thread.ID]*member
}

type member struct{ queued, admitted, running, yielded, cancelled, ended bool }

func (m *member) occupies() bool { return m.admitted && !m.yielded && !m.ended }
func (m *member) waits() bool {
	return m.queued && !m.admitted && !m.running && !m.cancelled && !m.ended
}

func (r *lineRun) add(id thread.ID) {
	r.known = append(r.known, id)
	r.members[id] = &member{}
}

// pick draws a thread of this run, if there is one.
func (r *lineRun) pick(t *rapid.T) (thread.ID, *member) {
	if len(r.known) == 0 {
		t.Skip("no thread yet")
	}
	id := rapid.SampledFrom(r.known).Draw(t, "thread")
	return id, r.members[id]
}

func (r *lineRun) counts() (line store.Line) {
	for _, m := range r.members {
		if m.occupies() {
			line.Occupied++
		}
		if m.waits() {
			line.Queued++
		}
	}
	return line
}

// refused holds the store to refuse what leaves a state that a thread is not in.
func refused(t *rapid.T, err error, allowed bool) {
	if allowed != (err == nil) || (err != nil && !errors.Is(err, thread.ErrSettled)) {
		t.Fatalf("allowed %v, got %v", allowed, err)
	}
}

func (r *lineRun) enqueue(t *rapid.T) {
	id, m := r.pick(t)
	rec, err := r.h.Enqueue(r.h.ctx, id, r.slots, r.h.now)
	refused(t, err, !m.running && !m.ended)
	if err != nil || m.queued {
		return
	}
	before := r.counts()
	m.queued = true
	m.admitted = before.Queued == 0 && before.Occupied < r.slots && !m.cancelled
	if !m.admitted {
		r.line = append(r.line, id)
	}
	if rec.AdmittedAt.IsZero() == m.admitted {
		t.Fatalf("admitted %v, row %+v", m.admitted, rec)
	}
}

func (r *lineRun) admit(t *rapid.T) {
	var waiting []thread.ID
	for _, id := range r.line {
		if r.members[id].waits() {
			waiting = append(waiting, id)
		}
	}
	taken := rapid.IntRange(0, 1).Draw(t, "taken")
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

func (r *lineRun) claim(t *rapid.T) {
	id, m := r.pick(t)
	_, err := r.h.Apply(r.h.ctx, store.Claimed(id, 1, "h", r.h.now))
	refused(t, err, !m.running && !m.ended && !m.cancelled)
	m.running = m.running || err == nil
}

func (r *lineRun) yield(t *rapid.T) {
	id, m := r.pick(t)
	yielded := rapid.Bool().Draw(t, "yielded")
	err := r.h.Yield(r.h.ctx, id, yielded)
	refused(t, err, m.running && !m.ended)
	if err == nil {
		m.yielded = yielded
	}
}

func (r *lineRun) cancel(t *rapid.T) {
	id, m := r.pick(t)
	if _, err := r.h.RequestCancel(r.h.ctx, id, r.h.now); err != nil {
		t.Fatal(err)
	}
	m.cancelled = m.cancelled || !m.ended
}

func (r *lineRun) end(t *rapid.T) {
	id, m := r.pick(t)
	_, err := r.h.Apply(r.h.ctx, r.h.finished(id, thread.Error))
	refused(t, err, !m.ended)
	m.ended = true
}

func (r *lineRun) compare(t *rapid.T) {
	got, err := r.h.Line(r.h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.counts(); got != want {
		t.Fatalf("line %+v, want %+v", got, want)
	}
}
