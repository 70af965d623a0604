package storetest

import (
	"errors"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// handOverTests are about budgets that pass on to a thread's successor.
var handOverTests = []test{
	{"a successor has what is left", handOverChild},
	{"a root's successor is a root", handOverRoot},
	{"what children hold stays where it is", handOverChildren},
	{"the chain has back what its children have left", handOverGivesBack},
	{"an overdrawn chain has back what is left in all", handOverOverdrawnGivesBack},
	{"a parent that has ended is no obstacle", handOverOrphan},
	{"nothing is left of an overdrawn budget", handOverOverdrawn},
	{"a call that is on its way holds nothing back", handOverPledged},
	{"what was handed over is not given twice", handOverLate},
	{"what cannot be handed over", handOverRefuses},
	{"at once it is handed over once", handOverAtOnce},
}

// handOver hands a budget over, twice, and expects what is left of it.
func (h *harness) handOver(from, to thread.ID, want thread.Micros) {
	h.Helper()
	for range 2 {
		got, err := h.HandOver(h.ctx, from, to, h.now)
		h.noError(err)
		if got != want {
			h.Errorf("%s was handed over, want %s", got, want)
		}
	}
}

func handOverChild(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.reserve("b", "root", 40) // nothing is free above
	h.report("a", 25)
	h.handOver("a", "a2", 35)
	h.want("a", "root", 25, 0, 25, 25, false)
	h.want("a2", "root", 35, 0, 0, 0, true)
	h.want("root", "", 100, 75, 25, 0, true)
	h.report("a2", 30)
	h.handOver("a2", "a3", 5)
	h.handOver("a3", "a4", 5)
	h.report("a4", 5)
	for _, id := range []thread.ID{"a", "a4", "b"} {
		h.settle(id)
	}
	h.want("root", "", 100, 0, 60, 0, true)
}

func handOverRoot(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.report("root", 30)
	h.handOver("root", "root2", 70)
	h.want("root", "", 30, 0, 30, 30, false)
	h.want("root2", "", 70, 0, 0, 0, true)
	h.raise("root2", 100)
	h.want("root2", "", 100, 0, 0, 0, true)
	if left, err := h.HandOver(h.ctx, "root", "root2", h.now); err != nil || left != 100 {
		h.Errorf("again, when it was raised: %s, %v", left, err)
	}
}

func handOverChildren(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 80)
	h.reserve("goes-on", "a", 30)
	h.reserve("done", "a", 10)
	h.report("done", 4)
	h.settle("done")
	h.report("a", 6)
	h.handOver("a", "a2", 40)
	h.want("a", "root", 40, 30, 10, 6, false)
	h.want("root", "", 100, 70, 10, 0, true)
	if err := h.Reserve(h.ctx, "new", "a", 1, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("reserved from a budget that was handed over: %v", err)
	}
	h.report("goes-on", 20)
	h.settle("goes-on") // the 10 that it has not used are the successor's
	h.want("a", "root", 30, 0, 30, 6, false)
	h.want("a2", "root", 50, 0, 0, 0, true)
	h.want("root", "", 100, 50, 30, 0, true)
	h.report("a2", 50)
	h.settle("a2")
	h.want("root", "", 100, 0, 80, 0, true)
}

// handOverGivesBack: the money of a chain stays with it, past threads that have
// ended in between, to the last of the chain; without that it goes up.
func handOverGivesBack(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 80)
	h.reserve("done", "a", 50)
	h.reserve("deep", "done", 40)
	h.report("done", 5)
	h.settle("done") // has 5 left, which a has back
	h.handOver("a", "a2", 35)
	h.report("a2", 15)
	h.handOver("a2", "a3", 20)
	h.report("deep", 10)
	h.settle("deep")
	h.want("done", "a", 50, 0, 15, 5, false)
	h.want("a", "root", 15, 0, 15, 0, false)
	h.want("a2", "root", 15, 0, 15, 15, false)
	h.want("a3", "root", 50, 0, 0, 0, true)
	h.want("root", "", 100, 50, 30, 0, true)
	h.reserve("late", "a3", 30)
	h.handOver("a3", "a4", 20)
	h.settle("a4")
	h.settle("late") // nobody continues the chain
	h.want("root", "", 100, 0, 30, 0, true)
}

// handOverOverdrawnGivesBack: what was spent over a budget is made up for first.
func handOverOverdrawnGivesBack(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("child", "root", 60)
	h.report("root", 90)
	h.handOver("root", "root2", 0)
	h.settle("child")
	h.want("root", "", 90, 0, 90, 90, false)
	h.want("root2", "", 10, 0, 0, 0, true)
}

// handOverOrphan hands over below two that have ended, up to one that has not.
func handOverOrphan(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 80)
	h.reserve("a1", "a", 60)
	h.reserve("a11", "a1", 50)
	h.settle("a1")
	h.settle("a")
	h.reserve("b", "root", 50)
	h.report("a11", 20)
	h.handOver("a11", "next", 30)
	h.want("a11", "a1", 20, 0, 20, 20, false)
	h.want("next", "a1", 30, 0, 0, 0, true)
	h.want("a1", "a", 60, 30, 20, 0, false)
	h.want("a", "root", 80, 30, 20, 0, false)
	h.want("root", "", 100, 80, 20, 0, true)
	h.report("next", 1)
	h.settle("next")
	h.settle("b")
	h.want("a", "root", 80, 0, 21, 0, false)
	h.want("root", "", 100, 0, 21, 0, true)
}

func handOverOverdrawn(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.reserve("a1", "a", 20)
	h.report("a", 55) // more than is left, as a provider may bill
	h.handOver("a", "a2", 0)
	h.want("a", "root", 60, 20, 55, 55, false)
	h.want("a2", "root", 0, 0, 0, 0, true)
	h.want("root", "", 100, 20, 55, 0, true)
}

func handOverPledged(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.noError(h.Pledge(h.ctx, "root", 90, h.now))
	h.handOver("root", "root2", 100)
	h.want("root", "", 0, 0, 0, 0, false)
}

func handOverLate(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.report("root", 10)
	h.handOver("root", "root2", 90)
	var short *store.InsufficientError
	if err := h.ReserveAfter(h.ctx, "late", "root", 1, h.now); !errors.As(err, &short) || short.Remaining != 0 {
		h.Errorf("reserved what was handed over: %v", err)
	}
}

func handOverRefuses(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	for _, id := range []thread.ID{"a", "b", "ended"} {
		h.reserve(id, "root", 20)
	}
	h.reserve("a1", "a", 5)
	h.settle("ended")
	for name, c := range map[string]struct {
		from, to thread.ID
		noBudget bool
	}{
		"nobody's":                     {"nobody", "next", true},
		"that of one that has ended":   {"ended", "next", true},
		"to one that has a budget":     {"a", "b", false},
		"to itself":                    {"a", "a", false},
		"from the ended to itself":     {"ended", "ended", false},
		"from the ended to a stranger": {"ended", "a1", false},
		"to nobody":                    {"a", "", false},
	} {
		_, err := h.HandOver(h.ctx, c.from, c.to, h.now)
		if err == nil || errors.Is(err, store.ErrNoBudget) != c.noBudget {
			h.Errorf("%s: %v", name, err)
		}
	}
	h.want("a", "root", 20, 5, 0, 0, true)
	h.want("b", "root", 20, 0, 0, 0, true)
	h.want("root", "", 100, 40, 0, 0, true)
}

func handOverAtOnce(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.report("a", 10)
	for _, err := range atOnce(8, func(int) error {
		left, err := h.HandOver(h.ctx, "a", "a2", h.now)
		if err == nil && left != 50 {
			err = errors.New("handed over " + left.String())
		}
		return err
	}) {
		h.noError(err)
	}
	h.want("root", "", 100, 50, 10, 0, true)
}

// handOver is an operation of [ledgerModel]: the budget of a thread is split into
// what it has used, which ends, and the rest.
func (r *modelRun) handOver(t *rapid.T) {
	from, to := r.m.any(t, "from"), r.newID()
	n, ok := r.m.nodes[from]
	times := rapid.IntRange(1, 2).Draw(t, "times")
	for range times {
		left, err := r.h.HandOver(r.h.ctx, from, to, r.h.now)
		if !ok || !n.active {
			if !errors.Is(err, store.ErrNoBudget) {
				t.Fatalf("handover by %s without a budget: %v", from, err)
			}
			return
		}
		if want := r.m.remaining(from) + n.pledged; err != nil || left != want {
			t.Fatalf("%s has handed over %d, %v; want %d", from, left, err, want)
		}
	}
	left := r.m.remaining(from) + n.pledged
	r.m.nodes[to] = &node{parent: n.parent, max: left, active: true}
	n.max -= left
	n.next = to
	r.m.settle(from)
}
