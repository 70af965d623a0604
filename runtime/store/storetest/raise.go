package storetest

import (
	"errors"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var raiseTests = []test{
	{"a root may come to more", raiseRoot},
	{"a child's raise comes out of its parent", raiseChild},
	{"at once no more is given than there is", raiseAtOnce},
	{"a raise is settled with the rest", raiseSettled},
	{"what a call can cost is nobody else's", pledge},
}

func (h *harness) raise(id thread.ID, to thread.Micros) {
	h.Helper()
	h.noError(h.Raise(h.ctx, id, to, h.now))
}

func raiseRoot(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.report("root", 100)
	for _, to := range []thread.Micros{150, 150, 20, -1} { // the last three change nothing
		h.raise("root", to)
		h.want("root", "", 150, 0, 100, 100, true)
	}
	h.settle("root")
	for _, id := range []thread.ID{"root", "nobody"} {
		if err := h.Raise(h.ctx, id, 900, h.now); !errors.Is(err, store.ErrNoBudget) {
			h.Errorf("raised %s, which has no active budget: %v", id, err)
		}
	}
}

func raiseChild(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.reserve("a1", "a", 40)
	h.report("root", 10)
	h.raise("a1", 55) // out of a's, not of root's
	h.want("a1", "a", 55, 0, 0, 0, true)
	h.want("a", "root", 60, 55, 0, 0, true)
	h.want("root", "", 100, 60, 10, 10, true)

	var short *store.InsufficientError
	if err := h.Raise(h.ctx, "a1", 61, h.now); !errors.As(err, &short) ||
		*short != (store.InsufficientError{Parent: "a", Requested: 6, Remaining: 5}) {
		h.Errorf("6 more of 5: %v", err)
	}
	h.want("a1", "a", 55, 0, 0, 0, true)
	h.raise("a", 90) // all that root has left
	h.raise("a1", 61)
	h.want("a", "root", 90, 61, 0, 0, true)
	h.want("root", "", 100, 90, 10, 10, true)

	h.settle("a")
	if err := h.Raise(h.ctx, "a1", 62, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("raised out of a settled budget: %v", err)
	}
	h.want("a1", "a", 61, 0, 0, 0, true)
}

func raiseAtOnce(h *harness) {
	const children, held, each = 12, 5, 8
	h.noError(h.OpenRoot(h.ctx, "root", children*held+50, h.now))
	child := func(i int) thread.ID { return thread.NewID("child", h.now, i+1) }
	for i := range children {
		h.reserve(child(i), "root", held)
	}
	var given thread.Micros
	for _, err := range atOnce(children, func(i int) error { return h.Raise(h.ctx, child(i), held+each, h.now) }) {
		var short *store.InsufficientError
		switch {
		case err == nil:
			given += each
		case !errors.As(err, &short):
			h.Error(err)
		}
	}
	if given != 50/each*each {
		h.Errorf("%s was given", given)
	}
	h.want("root", "", children*held+50, children*held+given, 0, 0, true)
}

func raiseSettled(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 20)
	h.raise("a", 70)
	h.report("a", 65)
	h.settle("a")
	h.want("a", "root", 70, 0, 65, 65, false)
	h.want("root", "", 100, 0, 65, 0, true)
}

func pledge(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 20)
	h.noError(h.Pledge(h.ctx, "root", 30, h.now))
	h.noError(h.Pledge(h.ctx, "root", 70, h.now)) // in place of the first
	h.raise("a", 30)
	var short *store.InsufficientError
	for name, err := range map[string]error{
		"raised":             h.Raise(h.ctx, "a", 31, h.now),
		"reserved":           h.Reserve(h.ctx, "b", "root", 1, h.now),
		"pledged":            h.Pledge(h.ctx, "root", 71, h.now),
		"pledged by a child": h.Pledge(h.ctx, "a", 31, h.now),
	} {
		if !errors.As(err, &short) {
			h.Errorf("%s out of a pledge: %v", name, err)
		}
	}
	h.report("root", 0) // the call has failed and was free
	h.want("root", "", 100, 30, 0, 0, true)
	h.raise("a", 100)

	h.noError(h.Pledge(h.ctx, "a", 60, h.now))
	h.settle("a")
	h.want("a", "root", 100, 0, 0, 0, false)
	h.want("root", "", 100, 0, 0, 0, true)
	for _, id := range []thread.ID{"a", "nobody"} {
		if err := h.Pledge(h.ctx, id, 0, h.now); !errors.Is(err, store.ErrNoBudget) {
			h.Errorf("pledged by %s, which has no active budget: %v", id, err)
		}
	}
	if err := h.Pledge(h.ctx, "root", -1, h.now); err == nil {
		h.Error("a negative amount was pledged")
	}
}

// pledge is an operation of [ledgerModel].
func (r *modelRun) pledge(t *rapid.T) {
	id := r.m.any(t, "thread")
	amount := thread.Micros(rapid.Int64Range(0, 400).Draw(t, "amount"))
	err := r.h.Pledge(r.h.ctx, id, amount, r.h.now)
	n, ok := r.m.nodes[id]
	if !ok || !n.active {
		if !errors.Is(err, store.ErrNoBudget) {
			t.Fatalf("pledge by %s without a budget: %v", id, err)
		}
		return
	}
	if left := r.m.remaining(id) + n.pledged; amount > left {
		var short *store.InsufficientError
		if !errors.As(err, &short) || short.Remaining != left {
			t.Fatalf("pledge %d of %d: %v", amount, left, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	n.pledged = amount
}

// raise is an operation of [ledgerModel].
func (r *modelRun) raise(t *rapid.T) {
	id := r.m.any(t, "thread")
	to := thread.Micros(rapid.Int64Range(0, 1500).Draw(t, "to"))
	err := r.h.Raise(r.h.ctx, id, to, r.h.now)
	n, ok := r.m.nodes[id]
	if !ok || !n.active {
		if !errors.Is(err, store.ErrNoBudget) {
			t.Fatalf("raise of %s without a budget: %v", id, err)
		}
		return
	}
	more := to - n.max
	switch parent := r.m.nodes[n.parent]; {
	case more <= 0 || parent == nil:
	case !parent.active:
		if !errors.Is(err, store.ErrNoBudget) {
			t.Fatalf("raise of %s, whose parent has ended: %v", id, err)
		}
		return
	case more > r.m.remaining(n.parent):
		var short *store.InsufficientError
		if !errors.As(err, &short) || short.Remaining != r.m.remaining(n.parent) {
			t.Fatalf("raise by %d of %d: %v", more, r.m.remaining(n.parent), err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	n.max = max(n.max, to)
}
