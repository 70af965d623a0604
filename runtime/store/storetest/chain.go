package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// chainTests are about threads that continue others.
var chainTests = []test{
	{"continuing a thread, and how", chainRegister},
	{"a chain has one root", chainRoot},
	{"a handoff is no spawn", chainHandoffParent},
	{"a resume is a spawn like any", chainResumeParent},
	{"a thread that is linked is not continued again", chainLinked},
	{"a thread that is not linked does not run", chainNotLinked},
	{"a link is made once", linkOnce},
	{"what cannot be linked", linkRefuses},
	{"one of many links counts", linkRace},
	{"a handoff passes the slot on", handoffAdmits},
	{"a handoff is made once", handoffOnce},
	{"a handoff passes the place in the queue on", handoffPlace},
	{"a successor that cannot run is not admitted", handoffNotAdmitted},
	{"a thread that is no successor is not linked", handoffStranger},
	{"only a continued thread names a successor", handoffOutcome},
}

// newSuccessor is the description of a thread that is to continue another.
func (h *harness) newSuccessor(id thread.ID, handoff bool) store.NewThread {
	n := h.newThread("next", "")
	n.ContinuationOf, n.Handoff = id, handoff
	return n
}

// successor registers a thread to continue another.
func (h *harness) successor(id thread.ID, handoff bool) thread.ID {
	h.Helper()
	rec, created, err := h.Register(h.ctx, h.newSuccessor(id, handoff), claimNothing)
	h.noError(err)
	if !created || rec.ContinuationOf != id || rec.Status != thread.Created || rec.Queued() {
		h.Errorf("successor of %s: created %v, %+v", id, created, rec)
	}
	return rec.ThreadID
}

// continued is the change that ends a thread which hands over to next.
func (h *harness) continued(id, next thread.ID) store.Change {
	h.Helper()
	o := thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: next, TrailingTurns: 2}}
	c, err := store.Finished(id, o, nil, h.now.Add(time.Minute))
	h.noError(err)
	return c
}

// handedOver is a running thread that has handed over, and its successor.
func (h *harness) handedOver() (id, next thread.ID) {
	h.Helper()
	id = h.running("first", "")
	next = h.successor(id, true)
	h.apply(h.continued(id, next))
	return id, next
}

func chainRegister(h *harness) {
	for _, s := range thread.States() {
		for _, asked := range []bool{false, true} {
			for _, handoff := range []bool{false, true} {
				id := h.inState(s)
				if asked {
					_, err := h.RequestCancel(h.ctx, id, "", h.now)
					h.noError(err)
				}
				before := h.get(id)
				offered := false
				_, _, err := h.Register(h.ctx, h.newSuccessor(id, handoff), func(thread.ID) error {
					offered = true
					return nil
				})
				allowed := s.Terminal() && !handoff || s == thread.Running && handoff && !asked
				var refused *store.PredecessorError
				want := store.PredecessorError{Thread: id, State: s, Stopped: asked && !s.Terminal(), Handoff: handoff}
				if allowed != (err == nil) || offered != allowed || err != nil && (!errors.As(err, &refused) || *refused != want) {
					h.Errorf("after one that is %s, asked %v, handoff %v: offered %v, %v", s, asked, handoff, offered, err)
				}
				if after := h.get(id); !reflect.DeepEqual(before, after) {
					h.Errorf("registering made %+v\nof %+v", after, before)
				}
			}
		}
	}
	if _, _, err := h.Register(h.ctx, h.newSuccessor("no/such", true), claimNothing); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("after nobody: %v", err)
	}
	if _, _, err := h.Register(h.ctx, h.newSuccessor("", true), claimNothing); err == nil {
		h.Error("a handoff from nobody was registered")
	}
}

func chainRoot(h *harness) {
	first, second := h.handedOver()
	h.apply(store.Claimed(second, thread.Process{PID: 1, Host: "host"}, h.now))
	third := h.successor(second, true)
	h.apply(h.continued(second, third))
	h.apply(h.finished(third, thread.Error))
	fourth := h.successor(third, false)
	h.noError(h.Link(h.ctx, third, fourth, h.now))
	type links struct{ root, of, by thread.ID }
	for id, want := range map[thread.ID]links{
		first:  {by: second},
		second: {root: first, of: first, by: third},
		third:  {root: first, of: second, by: fourth},
		fourth: {root: first, of: third},
	} {
		rec := h.get(id)
		if got := (links{rec.ChainRootID, rec.ContinuationOf, rec.ContinuationThreadID}); got != want {
			h.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
}

func chainHandoffParent(h *harness) {
	parent := h.running("parent", "")
	child := h.running("child", parent)
	h.label(child, store.LabelChange{Name: "the work"})
	for range 2 { // below a parent that runs, and one that has ended
		n := h.newSuccessor(child, true)
		n.MaxSpawns = 0
		rec, _, err := h.Register(h.ctx, n, claimNothing)
		h.noError(err)
		if rec.ParentID != parent || rec.Name != "the work" {
			h.Errorf("successor %+v", rec)
		}
		if count := h.get(parent).SpawnCount; count != 1 {
			h.Errorf("spawn count %d of one spawn", count)
		}
		h.apply(h.continued(child, rec.ThreadID))
		child = rec.ThreadID
		h.apply(store.Claimed(child, thread.Process{PID: 1, Host: "host"}, h.now))
		if h.get(parent).Status == thread.Running {
			h.apply(h.finished(parent, thread.Completed))
		}
	}
}

func chainResumeParent(h *harness) {
	parent := h.running("parent", "")
	child := h.running("child", parent)
	h.apply(h.finished(child, thread.Error))
	n := h.newSuccessor(child, false)
	n.ParentID, n.MaxSpawns = parent, 1
	var limit *store.SpawnsError
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.As(err, &limit) {
		h.Errorf("one more than may be started: %v", err)
	}
	n.MaxSpawns = 2
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	if count := h.get(parent).SpawnCount; rec.ParentID != parent || count != 2 {
		h.Errorf("spawn count %d, resumed %+v", count, rec)
	}
	h.apply(h.finished(parent, thread.Completed))
	n.MaxSpawns = 9
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.Is(err, store.ErrParentGone) {
		h.Errorf("resumed below a parent that has ended: %v", err)
	}
}

func chainLinked(h *harness) {
	id, next := h.handedOver()
	var linked *store.LinkedError
	if _, _, err := h.Register(h.ctx, h.newSuccessor(id, false), claimNothing); !errors.As(err, &linked) ||
		*linked != (store.LinkedError{Thread: id, By: next}) {
		h.Errorf("continued twice: %v", err)
	}
}

func chainNotLinked(h *harness) {
	for _, handoff := range []bool{true, false} {
		before := h.inState(thread.Completed)
		if handoff {
			before = h.running("d", "")
		}
		id := h.successor(before, handoff)
		_, claimErr := h.Apply(h.ctx, store.Claimed(id, thread.Process{PID: 1, Host: "host"}, h.now))
		_, enqueueErr := h.Enqueue(h.ctx, id, 9, h.now)
		for _, err := range []error{claimErr, enqueueErr} {
			if !errors.Is(err, store.ErrNotLinked) {
				h.Errorf("handoff %v: %v", handoff, err)
			}
		}
		if !errors.Is(claimErr, thread.ErrSettled) {
			h.Errorf("claimed: %v", claimErr)
		}
		if handoff {
			h.apply(h.continued(before, id))
		} else {
			h.noError(h.Link(h.ctx, before, id, h.now))
			rec, err := h.Enqueue(h.ctx, id, 9, h.now)
			if err != nil || rec.AdmittedAt.IsZero() {
				h.Errorf("enqueued %+v, %v", rec, err)
			}
		}
		h.apply(store.Claimed(id, thread.Process{PID: 1, Host: "host"}, h.now))
	}
}

func linkOnce(h *harness) {
	for _, s := range thread.States() {
		if !s.Terminal() {
			continue
		}
		id := h.inState(s)
		first, second := h.successor(id, false), h.successor(id, false)
		at := h.now.Add(time.Hour)
		want := h.get(id)
		want.ContinuationThreadID, want.UpdatedAt = first, at
		for range 2 {
			h.noError(h.Link(h.ctx, id, first, at))
			if got := h.get(id); !reflect.DeepEqual(got, want) {
				h.Errorf("linked\n%+v, want\n%+v", got, want)
			}
			at = at.Add(time.Hour)
		}
		var linked *store.LinkedError
		if err := h.Link(h.ctx, id, second, at); !errors.As(err, &linked) || *linked != (store.LinkedError{Thread: id, By: first}) {
			h.Errorf("linked twice: %v", err)
		}
		h.apply(store.Claimed(first, thread.Process{PID: 1, Host: "host"}, h.now))
		h.noError(h.Link(h.ctx, id, first, at)) // it is, and has gone on since
	}
}

func linkRefuses(h *harness) {
	ended, other, running := h.inState(thread.Completed), h.inState(thread.Error), h.running("d", "")
	next, ofRunning, asked, over := h.successor(ended, false), h.successor(running, true), h.successor(ended, false), h.successor(ended, false)
	_, err := h.RequestCancel(h.ctx, asked, "", h.now)
	h.noError(err)
	h.apply(h.finished(over, thread.Cancelled))
	var predecessor *store.PredecessorError
	if err := h.Link(h.ctx, running, ofRunning, h.now); !errors.As(err, &predecessor) ||
		*predecessor != (store.PredecessorError{Thread: running, State: thread.Running}) {
		h.Errorf("linked a running thread: %v", err)
	}
	for name, c := range map[string]struct {
		id, next thread.ID
		want     error
	}{
		"an unknown thread":          {"no/such", next, thread.ErrNotFound},
		"an unknown successor":       {ended, "no/such", thread.ErrNotFound},
		"the successor of another":   {other, next, store.ErrNotLinked},
		"no successor":               {ended, running, store.ErrNotLinked},
		"itself":                     {ended, ended, store.ErrNotLinked},
		"one that was asked to stop": {ended, asked, thread.ErrSettled},
		"one that has ended":         {ended, over, thread.ErrSettled},
	} {
		if err := h.Link(h.ctx, c.id, c.next, h.now); !errors.Is(err, c.want) {
			h.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []thread.ID{ended, other, running} {
		if rec := h.get(id); rec.ContinuationThreadID != "" {
			h.Errorf("%s was linked to %s", id, rec.ContinuationThreadID)
		}
	}
}

func linkRace(h *harness) {
	const tries = 8
	id := h.inState(thread.Completed)
	var next []thread.ID
	for range tries {
		next = append(next, h.successor(id, false))
	}
	var winner thread.ID
	refusals := make(map[thread.ID]int)
	for i, err := range atOnce(tries, func(i int) error { return h.Link(h.ctx, id, next[i], h.now) }) {
		var linked *store.LinkedError
		switch {
		case err == nil && winner != "":
			h.Errorf("%s and %s won", winner, next[i])
		case err == nil:
			winner = next[i]
		case !errors.As(err, &linked):
			h.Error(err)
		default:
			refusals[linked.By]++
		}
	}
	if rec := h.get(id); rec.ContinuationThreadID != winner || refusals[winner] != tries-1 {
		h.Errorf("won %s, refusals %v, row %+v", winner, refusals, rec)
	}
}

func handoffAdmits(h *harness) {
	old := h.enqueued(1).ThreadID
	h.apply(store.Claimed(old, thread.Process{PID: 1, Host: "host"}, h.now))
	waiting := h.enqueued(1).ThreadID
	next := h.successor(old, true)
	h.wantLoad(1, 1)

	rec := h.apply(h.continued(old, next))
	if rec.Status != thread.Continued || rec.ContinuationThreadID != next || rec.Outcome.Handoff.NewThreadID != next ||
		!reflect.DeepEqual(rec, h.get(old)) {
		h.Errorf("ended as %+v", rec)
	}
	at := h.now.Add(time.Minute)
	if rec := h.get(next); rec.Status != thread.Created || !rec.QueuedAt.Equal(at) || !rec.AdmittedAt.Equal(at) || !rec.UpdatedAt.Equal(at) {
		h.Errorf("successor %+v", rec)
	}
	h.wantLoad(1, 1)
	if id := h.admit(1); id != "" {
		h.Errorf("%s was admitted to a slot that had passed on", id)
	}
	h.apply(store.Claimed(next, thread.Process{PID: 2, Host: "host"}, h.now))
	h.apply(h.finished(next, thread.Completed))
	if id := h.admit(1); id != waiting {
		h.Errorf("then admitted %q, want %s", id, waiting)
	}
}

func handoffOnce(h *harness) {
	id := h.running("d", "")
	first, second := h.successor(id, true), h.successor(id, true)
	h.apply(h.continued(id, first))
	before := []thread.Record{h.get(id), h.get(first), h.get(second)}
	for _, c := range []store.Change{h.continued(id, first), h.continued(id, second), h.finished(id, thread.Error)} {
		if _, err := h.Apply(h.ctx, c); !errors.Is(err, thread.ErrSettled) {
			h.Errorf("%s again: %v", c.To(), err)
		}
	}
	if after := []thread.Record{h.get(id), h.get(first), h.get(second)}; !reflect.DeepEqual(before, after) {
		h.Errorf("before %+v\nafter  %+v", before, after)
	}
}

func handoffPlace(h *harness) {
	old := h.enqueued(1).ThreadID
	h.apply(store.Claimed(old, thread.Process{PID: 1, Host: "host"}, h.now))
	waiting := h.enqueued(1).ThreadID
	next := h.successor(old, true)
	h.apply(h.continued(old, next))
	if _, err := h.Return(h.ctx, next); err != nil {
		h.Errorf("its process was never started: %v", err)
	}
	last := h.enqueued(1).ThreadID
	if got := []thread.ID{h.admit(9), h.admit(9), h.admit(9)}; !slices.Equal(got, []thread.ID{next, waiting, last}) {
		h.Errorf("admitted %v", got)
	}
	id := h.running("never-in-line", "")
	behind := h.enqueued(0).ThreadID
	after := h.successor(id, true)
	h.apply(h.continued(id, after))
	if _, err := h.Return(h.ctx, after); err != nil {
		h.Error(err)
	}
	if got := []thread.ID{h.admit(9), h.admit(9)}; !slices.Equal(got, []thread.ID{behind, after}) {
		h.Errorf("admitted %v", got)
	}
}

func handoffNotAdmitted(h *harness) {
	for name, spoil := range map[string]func(id, next thread.ID){
		"asked to stop": func(_, next thread.ID) {
			_, err := h.RequestCancel(h.ctx, next, "", h.now)
			h.noError(err)
		},
		"asked to stop with the one before": func(id, _ thread.ID) {
			_, err := h.RequestCancel(h.ctx, id, "", h.now)
			h.noError(err)
		},
		"ended": func(_, next thread.ID) { h.apply(h.finished(next, thread.Error)) },
	} {
		id := h.running("d", "")
		next := h.successor(id, true)
		spoil(id, next)
		before := h.get(next)
		if rec := h.apply(h.continued(id, next)); rec.ContinuationThreadID != next {
			h.Errorf("%s: not linked, %+v", name, rec)
		}
		if after := h.get(next); !reflect.DeepEqual(before, after) {
			h.Errorf("%s: before %+v\nafter  %+v", name, before, after)
		}
	}
}

func handoffStranger(h *harness) {
	other := h.running("other", "")
	for name, next := range map[string]thread.ID{
		"nobody": "no/such", "another's": h.successor(other, true), "who continues nobody": h.register("d", ""),
	} {
		id := h.running("d", "")
		if rec := h.apply(h.continued(id, next)); rec.Status != thread.Continued || rec.ContinuationThreadID != "" {
			h.Errorf("%s: %+v", name, rec)
		}
		if rec, err := h.Get(h.ctx, next); err == nil && !rec.AdmittedAt.IsZero() {
			h.Errorf("%s was admitted: %+v", name, rec)
		}
	}
}

func handoffOutcome(h *harness) {
	for _, s := range thread.States() {
		for name, handoff := range map[string]*thread.Handoff{
			"another": {NewThreadID: "y"}, "itself": {NewThreadID: "x"}, "nobody": {}, "nothing": nil,
		} {
			_, err := store.Finished("x", thread.Outcome{State: s, Handoff: handoff}, nil, h.now)
			allowed := s.Terminal() && (s == thread.Continued && name == "another" || s != thread.Continued && handoff == nil)
			if allowed != (err == nil) {
				h.Errorf("%s with %s: %v", s, name, fmt.Sprint(err))
			}
		}
	}
}
