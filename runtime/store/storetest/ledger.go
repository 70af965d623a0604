package storetest

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var ledgerTests = []test{
	{"a root has what it was given", ledgerRoot},
	{"reservations come out of the parent", ledgerReserve},
	{"at once no more is reserved than there is", ledgerOverCommit},
	{"reports are totals", ledgerReport},
	{"settling cascades once", ledgerSettle},
	{"what outlives its parent is counted above it", ledgerOrphans},
	{"spend climbs past settled ancestors", ledgerLateSpend},
	{"a bill above the budget is recorded", ledgerOverBilled},
	{"any sequence of operations", ledgerModel},
}

// want compares the amounts of a row.
func (h *harness) want(id thread.ID, parent thread.ID, maxSpend, reserved, actual, own thread.Micros, active bool) {
	h.Helper()
	got, err := h.Budget(h.ctx, id)
	h.noError(err)
	got.CreatedAt, got.UpdatedAt, got.Successor = h.now, h.now, "" // the model checks the last
	want := store.Budget{
		ThreadID: id, ParentID: parent, MaxSpend: maxSpend, Reserved: reserved, Actual: actual, Own: own,
		Active: active, CreatedAt: h.now, UpdatedAt: h.now,
	}
	if !reflect.DeepEqual(got, want) {
		h.Errorf("budget\n%+v, want\n%+v", got, want)
	}
}

func (h *harness) reserve(child, parent thread.ID, amount thread.Micros) {
	h.Helper()
	h.noError(h.Reserve(h.ctx, child, parent, amount, h.now))
}

func (h *harness) report(id thread.ID, own thread.Micros) {
	h.Helper()
	h.noError(h.Report(h.ctx, id, own, h.now))
}

func (h *harness) settle(id thread.ID) {
	h.Helper()
	h.noError(h.Settle(h.ctx, id, h.now))
}

func ledgerRoot(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.noError(h.OpenRoot(h.ctx, "root", 900, h.now))
	h.want("root", "", 100, 0, 0, 0, true)
	if got, err := h.Budget(h.ctx, "root"); err != nil || !got.CreatedAt.Equal(h.now) || got.Remaining() != 100 {
		h.Errorf("budget %+v, %v", got, err)
	}
	if err := h.OpenRoot(h.ctx, "debt", -1, h.now); err == nil {
		h.Error("a negative budget was opened")
	}
	if _, err := h.Budget(h.ctx, "debt"); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("budget of an unknown thread: %v", err)
	}
	if _, _, err := h.Tree(h.ctx, "debt"); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("tree of an unknown thread: %v", err)
	}
}

func ledgerReserve(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.report("root", 10)
	h.reserve("a", "root", 60)
	h.reserve("a", "root", 60) // the same again
	h.reserve("a1", "a", 25)   // out of a's, not of root's
	h.reserve("free", "root", 0)
	h.want("root", "", 100, 60, 10, 10, true)
	h.want("a", "root", 60, 25, 0, 0, true)

	var short *store.InsufficientError
	if err := h.Reserve(h.ctx, "b", "root", 31, h.now); !errors.As(err, &short) {
		h.Errorf("31 of 30: %v", err)
	} else if *short != (store.InsufficientError{Parent: "root", Requested: 31, Remaining: 30}) {
		h.Errorf("31 of 30: %+v", *short)
	}
	h.reserve("b", "root", 30)
	if err := h.Reserve(h.ctx, "c", "nobody", 1, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("unknown parent: %v", err)
	}
	h.settle("a1")
	if err := h.Reserve(h.ctx, "c", "a1", 1, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("settled parent: %v", err)
	}
	for name, err := range map[string]error{
		"a settled thread":  h.Reserve(h.ctx, "a1", "a", 25, h.now),
		"another amount":    h.Reserve(h.ctx, "a", "root", 1, h.now),
		"another parent":    h.Reserve(h.ctx, "b", "a", 30, h.now),
		"a negative amount": h.Reserve(h.ctx, "d", "root", -5, h.now),
		"itself":            h.Reserve(h.ctx, "e", "e", 0, h.now),
	} {
		if err == nil {
			h.Errorf("reserved for %s", name)
		}
	}
	h.want("root", "", 100, 90, 10, 10, true)
}

func ledgerOverCommit(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.want("root", "", 100, h.reserveAtOnce(h.Reserve), 0, 0, true)
}

// reserveAtOnce has children ask for more than the 100 of the root at the same
// time, and returns what they got, which is as much of it as possible.
func (h *harness) reserveAtOnce(
	reserve func(ctx context.Context, child, parent thread.ID, amount thread.Micros, at time.Time) error,
) (held thread.Micros) {
	h.Helper()
	const tries, each, most = 20, 15, 100
	for _, err := range atOnce(tries, func(i int) error {
		return reserve(h.ctx, thread.NewID("child", h.now, i+1), "root", each, h.now)
	}) {
		var short *store.InsufficientError
		switch {
		case err == nil:
			held += each
		case !errors.As(err, &short):
			h.Error(err)
		}
	}
	if held != most/each*each {
		h.Errorf("%s was reserved", held)
	}
	return held
}

func ledgerReport(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	for _, total := range []thread.Micros{30, 30, 20, 0, 45} {
		h.report("root", total)
	}
	h.want("root", "", 100, 0, 45, 45, true)
	h.settle("root")
	h.report("root", 45) // finishing is repeated after a crash
	h.report("root", 40)
	if err := h.Report(h.ctx, "root", 46, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("spend after the end: %v", err)
	}
	if err := h.Report(h.ctx, "nobody", 1, h.now); !errors.Is(err, store.ErrNoBudget) {
		h.Errorf("spend without a budget: %v", err)
	}
	h.want("root", "", 100, 0, 45, 45, false)
}

func ledgerSettle(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.reserve("a1", "a", 40)
	h.report("root", 5)
	h.report("a", 7)
	h.report("a1", 11)
	_, tree, err := h.Tree(h.ctx, "root")
	h.noError(err)
	if want := (store.TreeSpend{Actual: 23, Reserved: 60, Threads: 3, Active: 3}); tree != want {
		h.Errorf("tree %+v, want %+v", tree, want)
	}
	for _, id := range []thread.ID{"a1", "a1", "a", "a", "a1", "nobody"} {
		h.settle(id)
	}
	h.want("a1", "a", 40, 0, 11, 11, false)
	h.want("a", "root", 60, 0, 18, 7, false)
	h.want("root", "", 100, 0, 23, 5, true)
	h.settle("root")
	h.want("root", "", 100, 0, 23, 5, false)
	_, tree, err = h.Tree(h.ctx, "root")
	h.noError(err)
	if want := (store.TreeSpend{Actual: 23, Threads: 3}); tree != want {
		h.Errorf("tree %+v, want %+v", tree, want)
	}
}

func ledgerOrphans(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.reserve("a1", "a", 40)
	h.reserve("a2", "a", 10)
	h.report("a", 5)
	h.report("a2", 3)
	h.settle("a2")
	h.settle("a") // a1 goes on, and root still keeps its 40
	h.want("a", "root", 60, 40, 8, 5, false)
	h.want("a1", "a", 40, 0, 0, 0, true)
	h.want("root", "", 100, 40, 8, 0, true)
	h.reserve("b", "root", 52) // all that is left, and no more
	var short *store.InsufficientError
	if err := h.Reserve(h.ctx, "c", "root", 1, h.now); !errors.As(err, &short) || short.Remaining != 0 {
		h.Errorf("reserved what a grandchild holds: %v", err)
	}
	h.settle("b")

	h.settle("root")
	h.want("root", "", 100, 40, 8, 0, false)
	h.report("a1", 9)
	for range 2 {
		h.settle("a1")
		h.want("a1", "a", 40, 0, 9, 9, false)
		h.want("a", "root", 60, 0, 17, 5, false)
		h.want("root", "", 100, 0, 17, 0, false)
	}
}

// ledgerLateSpend ends a chain of threads from the top, with spend only at its
// end; the first ancestor that is active gets it and hands it on when it ends.
func ledgerLateSpend(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 80)
	h.reserve("a1", "a", 60)
	h.reserve("a11", "a1", 40)
	h.reserve("a111", "a11", 20)
	h.report("a111", 7)
	h.settle("a1")
	h.settle("a11")
	h.want("a11", "a1", 40, 20, 0, 0, false)
	h.want("a1", "a", 60, 20, 0, 0, false)
	h.want("a", "root", 80, 20, 0, 0, true)
	h.want("root", "", 100, 80, 0, 0, true)
	h.settle("a111")
	for id, parent := range map[thread.ID]thread.ID{"a11": "a1", "a1": "a"} {
		if b, err := h.Budget(h.ctx, id); err != nil || b.Actual != 7 || b.Reserved != 0 || b.ParentID != parent {
			h.Errorf("budget %+v, %v", b, err)
		}
	}
	h.want("a", "root", 80, 0, 7, 0, true)
	h.want("root", "", 100, 80, 0, 0, true)
	h.settle("a")
	h.want("root", "", 100, 0, 7, 0, true)
}

func ledgerOverBilled(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("a", "root", 60)
	h.report("a", 130)
	h.want("a", "root", 60, 0, 130, 130, true)
	h.settle("a")
	h.want("root", "", 100, 0, 130, 0, true)
	var short *store.InsufficientError
	if err := h.Reserve(h.ctx, "b", "root", 0, h.now); !errors.As(err, &short) || short.Remaining != -30 {
		h.Errorf("reserved from an overdrawn budget: %v", err)
	}
}
