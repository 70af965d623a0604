package storetest

import (
	"errors"
	"fmt"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// afterTests are about children of threads that have ended.
var afterTests = []test{
	{"only a parent that has ended can spawn late", registerLate},
	{"a late child counts as a spawn", registerLateLimit},
	{"nothing is started late below a cancel", registerLateCancelled},
	{"a thread that was given up does not stop what is started late", registerLateGivenUp},
	{"a late child has what its parent had left", reserveAfter},
	{"a late child has no more than those above have left", reserveAfterAbove},
	{"at once no more is given late than there is", reserveAfterAtOnce},
	{"what is bought late comes out of what was left", spendAfter},
	{"what is bought late counts above", spendAfterAbove},
}

func (h *harness) newLate(directive string, parent thread.ID) store.NewThread {
	n := h.newThread(directive, parent)
	n.ParentEnded = true
	return n
}

func registerLate(h *harness) {
	for _, s := range thread.States() {
		parent := h.inState(s)
		before, err := h.Get(h.ctx, parent)
		h.noError(err)
		_, _, err = h.Register(h.ctx, h.newLate("late", parent), claimNothing)
		if s.Terminal() != (err == nil) || err != nil && !errors.Is(err, store.ErrParentGone) {
			h.Errorf("a parent that is %s: %v", s, err)
		}
		after, err := h.Get(h.ctx, parent)
		h.noError(err)
		if s.Terminal() {
			before.SpawnCount++
		}
		if after.Status != before.Status || after.SpawnCount != before.SpawnCount || !after.UpdatedAt.Equal(before.UpdatedAt) {
			h.Errorf("the parent is\n%+v, was\n%+v", after, before)
		}
	}
	if _, _, err := h.Register(h.ctx, h.newLate("late", "no/such"), claimNothing); !errors.Is(err, store.ErrParentGone) {
		h.Errorf("an unknown parent: %v", err)
	}
}

func registerLateLimit(h *harness) {
	const most, tries = 3, 8
	parent := h.inState(thread.Completed)
	started := 0
	for _, err := range atOnce(tries, func(i int) error {
		n := h.newLate(fmt.Sprintf("late%d", i), parent)
		n.MaxSpawns = most
		_, _, err := h.Register(h.ctx, n, claimNothing)
		return err
	}) {
		var spent *store.SpawnsError
		switch {
		case err == nil:
			started++
		case !errors.As(err, &spent):
			h.Error(err)
		}
	}
	if started != most {
		h.Errorf("%d late children were started", started)
	}
}

func registerLateCancelled(h *harness) {
	root := h.running("root", "")
	ended := h.running("ended", root)
	h.apply(h.finished(ended, thread.Completed))
	_, err := h.RequestCancel(h.ctx, root, "", h.now)
	h.noError(err)
	if _, _, err := h.Register(h.ctx, h.newLate("late", ended), claimNothing); !errors.Is(err, store.ErrParentGone) {
		h.Errorf("started below a thread that was asked to stop: %v", err)
	}
}

// registerLateGivenUp: a thread could not hand over, and has ended otherwise.
func registerLateGivenUp(h *harness) {
	id := h.running("d", "")
	next := h.successor(id, true)
	_, err := h.RequestCancel(h.ctx, next, "", h.now)
	h.noError(err)
	h.apply(h.finished(next, thread.Cancelled))
	h.apply(h.finished(id, thread.Error))
	_, _, err = h.Register(h.ctx, h.newLate("late", id), claimNothing)
	h.noError(err)
}

func (h *harness) reserveAfter(child, parent thread.ID, amount thread.Micros) {
	h.Helper()
	h.noError(h.ReserveAfter(h.ctx, child, parent, amount, h.now))
}

func reserveAfter(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.report("root", 30)
	h.settle("root")
	for range 2 {
		h.reserveAfter("late", "root", 50)
		h.want("root", "", 100, 50, 30, 30, false)
		h.want("late", "root", 50, 0, 0, 0, true)
	}
	var short *store.InsufficientError
	if err := h.ReserveAfter(h.ctx, "more", "root", 21, h.now); !errors.As(err, &short) ||
		*short != (store.InsufficientError{Parent: "root", Requested: 21, Remaining: 20}) {
		h.Errorf("21 of 20: %v", err)
	}
	h.reserve("below", "late", 10) // of the late child, as of any
	h.report("below", 4)
	h.report("late", 7)
	h.settle("below")
	h.settle("late")
	h.want("root", "", 100, 0, 41, 30, false)
	for name, err := range map[string]error{
		"a settled thread":  h.ReserveAfter(h.ctx, "late", "root", 50, h.now),
		"an unknown parent": h.ReserveAfter(h.ctx, "x", "nobody", 1, h.now),
		"a negative amount": h.ReserveAfter(h.ctx, "x", "root", -1, h.now),
	} {
		if err == nil {
			h.Errorf("reserved for %s", name)
		}
	}
}

func reserveAfterAbove(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 80)
	h.reserve("a1", "a", 60)
	h.settle("a1")
	h.settle("a")              // root has all of its 100 again
	h.reserve("b", "root", 70) // and gives 70 away
	var short *store.InsufficientError
	if err := h.ReserveAfter(h.ctx, "late", "a1", 31, h.now); !errors.As(err, &short) ||
		*short != (store.InsufficientError{Parent: "root", Requested: 31, Remaining: 30}) {
		h.Errorf("31 of 30: %v", err)
	}
	h.want("a1", "a", 60, 0, 0, 0, false)
	h.reserveAfter("late", "a1", 30)
	h.want("a1", "a", 60, 30, 0, 0, false)
	h.want("a", "root", 80, 30, 0, 0, false)
	h.want("root", "", 100, 100, 0, 0, true)
	h.report("late", 9)
	h.settle("late")
	h.want("a", "root", 80, 0, 9, 0, false)
	h.want("root", "", 100, 70, 9, 0, true)
}

func reserveAfterAtOnce(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.settle("root")
	h.want("root", "", 100, h.reserveAtOnce(h.ReserveAfter), 0, 0, false)
}

// leastAbove is what a late child of id can be given: the least that one of those
// has left who count it.
func (m *model) leastAbove(id thread.ID) thread.Micros {
	least := m.remaining(id)
	for n := m.nodes[id]; !n.active && n.parent != ""; n = m.nodes[n.parent] {
		least = min(least, m.remaining(n.parent))
	}
	return least
}

// reserveAfter is an operation of [ledgerModel].
func (r *modelRun) reserveAfter(t *rapid.T) {
	child, parent := r.newID(), r.m.any(t, "parent")
	amount := thread.Micros(rapid.Int64Range(0, 300).Draw(t, "amount"))
	err := r.h.ReserveAfter(r.h.ctx, child, parent, amount, r.h.now)
	if _, ok := r.m.nodes[parent]; !ok {
		if !errors.Is(err, store.ErrNoBudget) {
			t.Fatalf("late reserve from %s without a budget: %v", parent, err)
		}
		return
	}
	if left := r.m.leastAbove(parent); amount > left {
		var short *store.InsufficientError
		if !errors.As(err, &short) || short.Remaining != left {
			t.Fatalf("late reserve %d of %d: %v", amount, left, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	r.m.nodes[child] = &node{parent: parent, max: amount, active: true}
}

// stands checks what a thread has come to, and what of it is its own.
func stands(h *harness, id thread.ID, actual, own thread.Micros) {
	h.Helper()
	b, err := h.Budget(h.ctx, id)
	if err != nil || b.Actual != actual || b.Own != own || b.Reserved != 0 {
		h.Errorf("%+v, %v; want actual %d, own %d", b, err, actual, own)
	}
}

func spendAfter(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.report("root", 30)
	if err := h.SpendAfter(h.ctx, "root", 1, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("a thread that has not ended: %v", err)
	}
	h.settle("root")
	h.noError(h.SpendAfter(h.ctx, "root", 50, h.now))
	stands(h, "root", 80, 30) // its own spend is what it was signed with
	h.noError(h.SpendAfter(h.ctx, "root", -45, h.now))
	stands(h, "root", 35, 30)
	var short *store.InsufficientError
	if err := h.SpendAfter(h.ctx, "root", 66, h.now); !errors.As(err, &short) || *short != (store.InsufficientError{Parent: "root", Requested: 66, Remaining: 65}) {
		h.Errorf("66 of 65: %v", err)
	}
	for name, err := range map[string]error{
		"more than was added is given back": h.SpendAfter(h.ctx, "root", -6, h.now), "an unknown thread": h.SpendAfter(h.ctx, "nobody", 1, h.now),
	} {
		if !errors.Is(err, store.ErrNoBudget) {
			h.Errorf("%s: %v", name, err)
		}
	}
	off, err := h.Mend().Miscounted(h.ctx)
	if err != nil || len(off) > 0 {
		h.Errorf("%v do not add up, %v", off, err)
	}
}

func spendAfterAbove(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.reserve("b", "a", 50)
	h.report("b", 10)
	h.settle("b")
	h.settle("a")
	h.noError(h.SpendAfter(h.ctx, "b", 20, h.now))
	stands(h, "b", 30, 10)
	stands(h, "a", 30, 0)
	stands(h, "root", 30, 0)
	h.report("root", 65) // 5 are left
	var short *store.InsufficientError
	if err := h.SpendAfter(h.ctx, "b", 6, h.now); !errors.As(err, &short) || short.Parent != "root" || short.Remaining != 5 {
		h.Errorf("6 of 5: %v", err)
	}
	off, err := h.Mend().Miscounted(h.ctx)
	if err != nil || len(off) > 0 {
		h.Errorf("%v do not add up, %v", off, err)
	}
}
