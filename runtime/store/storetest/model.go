package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// model is the ledger as the specification words it. It adds up where the store
// keeps running totals.
type model struct {
	nodes map[thread.ID]*node
	name  string // prefix of this run's ids
}

type node struct {
	parent, next      thread.ID // next: it was handed over to
	max, own, pledged thread.Micros
	active            bool
}

// children lists the nodes whose budget came from id.
func (m *model) children(id thread.ID) (list []thread.ID) {
	for child, n := range m.nodes {
		if n.parent == id {
			list = append(list, child)
		}
	}
	return list
}

func (m *model) actual(id thread.ID) thread.Micros {
	sum := m.nodes[id].own
	for _, c := range m.children(id) {
		if !m.nodes[c].active {
			sum += m.actual(c)
		}
	}
	return sum
}

func (m *model) reserved(id thread.ID) (sum thread.Micros) {
	for _, c := range m.children(id) {
		sum += m.held(c)
	}
	return sum
}

// held is what id keeps from its parent: all it was given until it has ended,
// then what is still held below it.
func (m *model) held(id thread.ID) thread.Micros {
	if n := m.nodes[id]; n.active {
		return n.max
	}
	return m.reserved(id)
}

func (m *model) remaining(id thread.ID) thread.Micros {
	return m.nodes[id].max - m.actual(id) - m.reserved(id) - m.nodes[id].pledged
}

// spent is the own spend of id and all below it.
func (m *model) spent(id thread.ID) thread.Micros {
	sum := m.nodes[id].own
	for _, c := range m.children(id) {
		sum += m.spent(c)
	}
	return sum
}

func (m *model) settle(id thread.ID) {
	n, ok := m.nodes[id]
	if !ok || !n.active {
		return
	}
	free := m.remaining(id) + n.pledged
	n.active, n.pledged = false, 0
	m.giveBack(n.parent, free)
}

// giveBack moves what a child of a settled parent has not used along the chain of
// the nearest thread above that has handed over.
func (m *model) giveBack(parent thread.ID, free thread.Micros) {
	for above := parent; above != "" && !m.nodes[above].active; above = m.nodes[above].parent {
		from := m.nodes[above]
		for heir := from.next; heir != ""; heir = m.nodes[heir].next {
			if n := m.nodes[heir]; n.active {
				given := max(0, min(free, from.max-m.actual(above)-m.reserved(above)))
				from.max -= given
				n.max += given
				return
			}
		}
	}
}

// any draws a known id, or one that has no budget.
func (m *model) any(t *rapid.T, label string) thread.ID {
	known := slices.Sorted(maps.Keys(m.nodes))
	return rapid.SampledFrom(append(known, thread.ID(m.name+"-nobody"))).Draw(t, label)
}

// ledgerModel makes random trees by random operations and compares the store with
// the model, then ends everything and checks the invariants. It does not compare
// after each operation only because that is most of the time such a test takes;
// every operation compares its own answer.
func ledgerModel(h *harness) {
	runs := 0
	rapid.Check(h.T, func(t *rapid.T) {
		runs++
		m := &model{nodes: make(map[thread.ID]*node), name: fmt.Sprintf("run%d", runs)}
		r := &modelRun{h: h, m: m}
		r.openRoot(t)
		t.Repeat(map[string]func(*rapid.T){
			"open root":     r.openRoot,
			"reserve":       r.reserve,
			"reserve after": r.reserveAfter,
			"raise":         r.raise,
			"pledge":        r.pledge,
			"report":        r.report,
			"settle":        r.settle,
			"hand over":     r.handOver,
		})
		r.compare(t)
		for _, id := range rapid.Permutation(slices.Sorted(maps.Keys(m.nodes))).Draw(t, "order of the end") {
			r.end(t, id)
		}
		r.invariants(t)
	})
}

type modelRun struct {
	h *harness
	m *model
}

func (r *modelRun) newID() thread.ID {
	return thread.ID(fmt.Sprintf("%s-%d", r.m.name, len(r.m.nodes)))
}

func (r *modelRun) openRoot(t *rapid.T) {
	id, most := r.newID(), thread.Micros(rapid.Int64Range(0, 1000).Draw(t, "max"))
	if err := r.h.OpenRoot(r.h.ctx, id, most, r.h.now); err != nil {
		t.Fatal(err)
	}
	r.m.nodes[id] = &node{max: most, active: true}
}

func (r *modelRun) reserve(t *rapid.T) {
	child, parent := r.newID(), r.m.any(t, "parent")
	amount := thread.Micros(rapid.Int64Range(0, 300).Draw(t, "amount"))
	err := r.h.Reserve(r.h.ctx, child, parent, amount, r.h.now)
	if n, ok := r.m.nodes[parent]; !ok || !n.active {
		if !errors.Is(err, store.ErrNoBudget) {
			t.Fatalf("reserve from %s without a budget: %v", parent, err)
		}
		return
	}
	if left := r.m.remaining(parent); amount > left {
		var short *store.InsufficientError
		if !errors.As(err, &short) || short.Remaining != left {
			t.Fatalf("reserve %d of %d: %v", amount, left, err)
		}
		return
	}
	if err == nil && rapid.Bool().Draw(t, "repeat") {
		err = r.h.Reserve(r.h.ctx, child, parent, amount, r.h.now)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.m.nodes[child] = &node{parent: parent, max: amount, active: true}
}

// report spends within what is left, as the loop does, or repeats an old total.
func (r *modelRun) report(t *rapid.T) {
	id := r.m.any(t, "thread")
	n, ok := r.m.nodes[id]
	if !ok || !n.active {
		total := thread.Micros(1)
		if ok {
			total += n.own
		}
		if err := r.h.Report(r.h.ctx, id, total, r.h.now); !errors.Is(err, store.ErrNoBudget) {
			t.Fatalf("report of %s without a budget: %v", id, err)
		}
		return
	}
	total := thread.Micros(rapid.Int64Range(0, int64(n.own+r.m.remaining(id)+n.pledged)).Draw(t, "total"))
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		if err := r.h.Report(r.h.ctx, id, total, r.h.now); err != nil {
			t.Fatal(err)
		}
	}
	n.own, n.pledged = max(n.own, total), 0
}

func (r *modelRun) settle(t *rapid.T) { r.end(t, r.m.any(t, "thread")) }

func (r *modelRun) end(t *rapid.T, id thread.ID) {
	if err := r.h.Settle(r.h.ctx, id, r.h.now); err != nil {
		t.Fatal(err)
	}
	r.m.settle(id)
}

// match holds every row against the model.
func (r *modelRun) match(t *rapid.T) {
	for id, n := range r.m.nodes {
		got, err := r.h.Budget(r.h.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		want := store.Budget{
			ThreadID: id, ParentID: n.parent, Successor: n.next, MaxSpend: n.max, Own: n.own, Pledged: n.pledged, Active: n.active, Actual: r.m.actual(id),
			Reserved: r.m.reserved(id), CreatedAt: got.CreatedAt, UpdatedAt: got.UpdatedAt,
		}
		if got != want {
			t.Fatalf("budget\n%+v, want\n%+v", got, want)
		}
	}
}

// compare is match for a ledger in which nobody spends more than it may.
func (r *modelRun) compare(t *rapid.T) {
	r.match(t)
	for id := range r.m.nodes {
		if n := r.m.nodes[id]; r.m.actual(id) > n.max || r.m.remaining(id) < 0 {
			t.Fatalf("%s is overdrawn: %+v", id, n)
		}
	}
}

// invariants holds when every thread has ended.
func (r *modelRun) invariants(t *rapid.T) {
	r.compare(t)
	for id, n := range r.m.nodes {
		if n.parent != "" {
			continue
		}
		row, got, err := r.h.Tree(r.h.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if spent := r.m.spent(id); got.Actual != spent || row.Actual != spent || got.Reserved != 0 || got.Active != 0 {
			t.Fatalf("ended tree of %s: %+v, row %+v, spent %d", id, got, row, spent)
		}
	}
}
