package storetest

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var glancerTests = []test{
	{"those that work and those that ended last", glanceRows},
	{"what is above and what is continued comes along", glanceLinked},
	{"the money of those that work and of those that are named", glanceBudgets},
	{"entries are counted by how they stand", glanceSet},
}

// wantGlance holds a glance to have the rows of some threads.
func wantGlance(h *harness, most store.EndedMost, want ...thread.ID) store.Glance {
	h.Helper()
	g, err := h.Glance(h.ctx, most)
	h.noError(err)
	var got []thread.ID
	for _, rec := range g.Rows {
		got = append(got, rec.ThreadID)
		whole, err := h.Get(h.ctx, rec.ThreadID)
		h.noError(err)
		if rec.Status != whole.Status || rec.Cost != whole.Cost || rec.Name != whole.Name || !rec.UpdatedAt.Equal(whole.UpdatedAt) || rec.ParentID != whole.ParentID ||
			rec.ContinuationOf != whole.ContinuationOf || rec.ContinuationThreadID != whole.ContinuationThreadID || rec.Kind != whole.Kind || rec.Worker != whole.Worker || rec.Queued() != whole.Queued() {
			h.Errorf("glance of %+v, the row is %+v", rec, whole)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		h.Errorf("glance of %v, want %v", got, want)
	}
	return g
}

func glanceRows(h *harness) {
	if g := wantGlance(h, store.EndedMost{Any: 9}); g.Threads != 0 || g.Deleted != 0 {
		h.Errorf("glance of nothing: %+v", g)
	}
	works := h.running("work", "")
	var last thread.ID
	for range 3 {
		h.now = h.now.Add(time.Second)
		last = ended(h, "work", "", thread.Completed)
	}
	h.now = h.now.Add(time.Second)
	below := ended(h, "work", works, thread.Error)
	wantGlance(h, store.EndedMost{}, works)
	wantGlance(h, store.EndedMost{Any: 1}, works, below)
	wantGlance(h, store.EndedMost{Any: 2}, works, below, last)
	if g := wantGlance(h, store.EndedMost{Any: 1, Roots: 1}, works, below, last); g.Threads != 5 {
		h.Errorf("%d threads, want 5", g.Threads)
	}
	refused, err := h.Delete(h.ctx, [][]thread.ID{{last}}, h.now)
	h.noError(errors.Join(err, refused[0]))
	if g := wantGlance(h, store.EndedMost{Any: 1}, works, below); g.Threads != 4 || g.Deleted == 0 {
		h.Errorf("after a deletion: %+v", g)
	}
}

func glanceLinked(h *harness) {
	root := h.running("root", "")
	middle := h.running("middle", root)
	leaf := h.running("leaf", middle)
	h.apply(h.finished(middle, thread.Completed))
	h.apply(h.finished(root, thread.Completed))
	next := h.successor(root, false)
	h.noError(h.Link(h.ctx, root, next, h.now))
	h.apply(store.Claimed(next, thread.Process{PID: 4711, Host: "host", Worker: "build-1"}, h.now))
	h.apply(h.finished(next, thread.Completed))
	wantGlance(h, store.EndedMost{}, root, middle, leaf, next)
}

func glanceBudgets(h *harness) {
	root := h.running("root", "")
	other := h.running("other", "")
	for _, id := range []thread.ID{root, other} {
		h.noError(h.OpenRoot(h.ctx, id, 1000, h.now))
	}
	h.noError(h.Settle(h.ctx, other, h.now))
	want := func(ids []thread.ID, want ...thread.ID) {
		h.Helper()
		list, err := h.Budgets(h.ctx, ids)
		h.noError(err)
		got := map[thread.ID]bool{}
		for _, b := range list {
			one, err := h.Budget(h.ctx, b.ThreadID)
			h.noError(err)
			if got[b.ThreadID] || one != b {
				h.Errorf("budget %+v, want %+v once", b, one)
			}
			got[b.ThreadID] = true
		}
		if found := slices.Sorted(maps.Keys(got)); !slices.Equal(found, want) {
			h.Errorf("budgets of %v: %v, want %v", ids, found, want)
		}
	}
	want(nil, root)
	want([]thread.ID{root, "nobody"}, root)
	want([]thread.ID{root, other}, other, root)
}

func glanceSet(h *harness) {
	if _, err := h.SetCounts(h.ctx, "nobody"); !errors.Is(err, store.ErrNoSet) {
		h.Errorf("counts of no set: %v", err)
	}
	id := h.set("mine", "hash", 5, "a", "b", "c", "d", "e")
	first, second := h.entry(id, 0), h.entry(id, 1)
	again := h.entry(id, 3)
	h.apply(failedChange(h, again, time.Minute))
	below := h.running("below", second)
	h.apply(h.finished(first, thread.Error))
	h.noError(h.RefuseEntry(h.ctx, id, 2, thread.Problem{Code: "no"}, h.now))
	next := h.successor(first, false)
	h.noError(h.Link(h.ctx, first, next, h.now))
	wantGlance(h, store.EndedMost{Any: 9, Roots: 9}, id, first, second, again, next, below)
	got, err := h.SetCounts(h.ctx, id)
	h.noError(err)
	if got.Items != 5 || got.Waiting != 1 || got.Retrying != 1 || got.Refused != 1 || got.States[thread.Error] != 0 || got.States[thread.Created] != 1 || got.States[thread.Running] != 1 || got.Below != 5 {
		h.Errorf("counts are %+v", got)
	}
}
