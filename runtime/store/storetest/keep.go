package storetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var keepTests = []test{
	{"a new store is whole", keepNew},
	{"rows come back as they were", restoreRecords},
	{"what exists is left alone", restoreExisting},
	{"rows come in any order", restoreOrder},
	{"references to nobody are dropped", restoreDangling},
	{"a bad row stays out by itself", restoreRefused},
	{"restored threads count up and are queued", restoreGoesOn},
	{"a thread that is not linked is not in the queue", restoreChains},
	{"running totals are computed", restoreTotals},
	{"budgets join those that exist", restoreJoins},
	{"random ledgers come back", restoreModel},
}

func keepNew(h *harness) {
	if lost, err := h.Lost(h.ctx); lost || err != nil {
		h.Errorf("lost %v, %v", lost, err)
	}
	h.noError(h.Check(h.ctx))
}

// record is a thread as its folder tells it.
func (h *harness) record(id thread.ID, state thread.State) thread.Record {
	rec := thread.Record{
		ThreadID: id, Kind: thread.KindDirective, Directive: "d", Status: state, Metadata: []byte("{}"),
		CreatedAt: h.now, UpdatedAt: h.now, LastUsed: h.now,
	}
	if state.Terminal() {
		rec.Outcome, rec.CompletedAt = &thread.Outcome{State: state, Result: "r"}, h.now
	}
	return rec
}

// restore restores rows of which none is refused.
func (h *harness) restore(threads ...store.Restored) store.Restoration {
	h.Helper()
	done, err := h.Restore(h.ctx, threads)
	h.noError(err)
	if len(done.Refused) > 0 {
		h.Errorf("refused %+v", done.Refused)
	}
	return done
}

func restoreRecords(h *harness) {
	var threads []store.Restored
	for i, state := range thread.States() {
		rec := h.record(thread.ID(fmt.Sprintf("d/%d", i)), state)
		rec.Name, rec.Process, rec.Model, rec.SpawnCount, rec.TokenCount = "n", someProcess(5), "fake/model", 6, 7
		rec.Metadata, rec.RequestKey = []byte(`{"a":1}`), fmt.Sprint("key", i)
		rec.Cost = thread.Cost{Turns: 1, InputTokens: 2, OutputTokens: 3, CacheReadTokens: 4, CacheWriteTokens: 5, Spend: 6}
		rec.UpdatedAt, rec.LastUsed = h.now.Add(time.Second), h.now.Add(time.Minute)
		rec.QueuedAt, rec.AdmittedAt, rec.CancelRequestedAt = h.now, h.now.Add(1e6), h.now.Add(2e6)
		rec.Yielded = state == thread.Running
		if i > 0 {
			before := threads[i-1].Record.ThreadID
			rec.ParentID, rec.ContinuationOf, rec.ContinuationThreadID, rec.ChainRootID = before, before, before, before
		}
		threads = append(threads, store.Restored{Record: rec})
	}
	if done := h.restore(threads...); done.Threads != len(threads) || done.Budgets != 0 {
		h.Errorf("restored %+v", done)
	}
	for _, want := range threads {
		if got := h.get(want.Record.ThreadID); !reflect.DeepEqual(got, want.Record) {
			h.Errorf("row\n%+v, want\n%+v", got, want.Record)
		}
	}
}

func restoreExisting(h *harness) {
	id := h.running("d", "")
	before := h.get(id)
	h.noError(h.OpenRoot(h.ctx, id, 100, h.now))
	h.report(id, 10)
	late := store.Restored{
		Record: h.record(id, thread.Error),
		Budget: &store.Budget{MaxSpend: 7, Own: 7, CreatedAt: h.now, UpdatedAt: h.now},
	}
	missing := store.Restored{Record: h.record("other", thread.Completed), Budget: late.Budget}
	for _, want := range []store.Restoration{{Threads: 1, Budgets: 1}, {}} {
		if done := h.restore(late, missing); !reflect.DeepEqual(done, want) {
			h.Errorf("restored %+v, want %+v", done, want)
		}
	}
	if after := h.get(id); !reflect.DeepEqual(after, before) {
		h.Errorf("row\n%+v, was\n%+v", after, before)
	}
	h.want(id, "", 100, 0, 10, 10, true)
}

func restoreOrder(h *harness) {
	ids := []thread.ID{"leaf", "middle", "root"}
	var threads []store.Restored
	for i, id := range ids {
		t := store.Restored{Record: h.record(id, thread.Running), Budget: &store.Budget{MaxSpend: 10, Active: true, CreatedAt: h.now, UpdatedAt: h.now}}
		if i+1 < len(ids) {
			t.Record.ParentID, t.Budget.ParentID = ids[i+1], ids[i+1]
		}
		threads = append(threads, t)
	}
	h.restore(threads...)
	below, err := h.Descendants(h.ctx, "root")
	h.noError(err)
	if len(below) != 2 || below[0].ThreadID != "middle" || below[1].ThreadID != "leaf" {
		h.Errorf("below the root: %+v", below)
	}
	h.want("middle", "root", 10, 10, 0, 0, true)
}

func restoreDangling(h *harness) {
	rec := h.record("child", thread.Running)
	rec.ParentID, rec.ContinuationOf, rec.ContinuationThreadID, rec.ChainRootID = "gone", "gone", "gone", "gone"
	h.restore(store.Restored{Record: rec, Budget: &store.Budget{ParentID: "gone", MaxSpend: 1, Active: true, CreatedAt: h.now, UpdatedAt: h.now}})
	if got, want := h.get("child"), h.record("child", thread.Running); !reflect.DeepEqual(got, want) {
		h.Errorf("row\n%+v, want\n%+v", got, want)
	}
	h.want("child", "", 1, 0, 0, 0, true)

	// Two that name each other as parent are no reason to turn in circles.
	budget := func(parent thread.ID, active bool) *store.Budget {
		return &store.Budget{ParentID: parent, MaxSpend: 5, Own: 1, Active: active, CreatedAt: h.now, UpdatedAt: h.now}
	}
	h.restore(store.Restored{Record: h.record("a", thread.Error), Budget: budget("b", false)},
		store.Restored{Record: h.record("b", thread.Error), Budget: budget("a", false)},
		store.Restored{Record: h.record("c", thread.Running), Budget: budget("a", true)})
	h.settle("c")
	var roots int
	for _, id := range []thread.ID{"a", "b"} {
		b, err := h.Budget(h.ctx, id)
		h.noError(err)
		if b.ParentID == "" {
			roots++
		}
	}
	if roots != 1 {
		h.Errorf("%d roots came of a circle of two", roots)
	}
}

func restoreRefused(h *harness) {
	good := h.record("good", thread.Completed)
	bad := map[thread.ID]func(*store.Restored){
		"../climbs":  func(*store.Restored) {},
		"no-kind":    func(t *store.Restored) { t.Record.Kind = "x" },
		"no-state":   func(t *store.Restored) { t.Record.Status = "paused" },
		"no-outcome": func(t *store.Restored) { t.Record.Outcome = nil },
		"no-time":    func(t *store.Restored) { t.Record.CreatedAt = time.Time{} },
		"metadata":   func(t *store.Restored) { t.Record.Metadata = []byte("[") },
		"data":       func(t *store.Restored) { t.Record.Outcome.Data = []byte("{") },
		"cost":       func(t *store.Restored) { t.Record.Cost.Spend = -1 },
		"budget":     func(t *store.Restored) { t.Budget.MaxSpend = -1 },
		"own parent": func(t *store.Restored) { t.Budget.ParentID = t.Record.ThreadID },
		"too rich":   func(t *store.Restored) { t.Budget.Own = 1 << 62 },
	}
	child := store.Restored{Record: h.record("child", thread.Completed)}
	child.Record.ParentID = "no-kind"
	threads := []store.Restored{child}
	for id, spoil := range bad {
		t := store.Restored{Record: h.record(id, thread.Completed), Budget: &store.Budget{CreatedAt: h.now, UpdatedAt: h.now}}
		spoil(&t)
		threads = append(threads, t)
	}
	done, err := h.Restore(h.ctx, append(threads, store.Restored{Record: good}))
	h.noError(err)
	refused := make(map[thread.ID]bool)
	for _, r := range done.Refused {
		if refused[r.ThreadID] = true; r.Err == nil {
			h.Errorf("%s was refused without a reason", r.ThreadID)
		}
	}
	if want := slices.Sorted(maps.Keys(bad)); !slices.Equal(slices.Sorted(maps.Keys(refused)), want) {
		h.Errorf("refused %v, want %v", refused, want)
	}
	if got := h.get("good"); !reflect.DeepEqual(got, good) {
		h.Errorf("good row %+v", got)
	}
	if got := h.get("child"); got.ParentID != "" {
		h.Errorf("child of a refused row %+v", got)
	}
}

func restoreGoesOn(h *harness) {
	late, early := h.record(thread.NewID("d", h.now, 7), thread.Created), h.record(thread.NewID("d", h.now, 1), thread.Created)
	late.QueuedAt, early.QueuedAt = h.now.Add(time.Second), h.now
	late.RequestKey, early.RequestKey = "same", "same"
	h.restore(store.Restored{Record: late}, store.Restored{Record: early})
	if id := h.register("d", ""); id != thread.NewID("d", h.now, 8) {
		h.Errorf("the next id is %s", id)
	}
	last := h.enqueued(0).ThreadID
	if got := []thread.ID{h.admit(3), h.admit(3), h.admit(3)}; !slices.Equal(got, []thread.ID{early.ThreadID, late.ThreadID, last}) {
		h.Errorf("admitted %v", got)
	}
	if rec, err := h.ByRequestKey(h.ctx, "same"); err != nil || rec.ThreadID != early.ThreadID {
		h.Errorf("request key names %s, %v", rec.ThreadID, err)
	}
}

func restoreChains(h *harness) {
	queued := func(id, of thread.ID) store.Restored {
		rec := h.record(id, thread.Created)
		rec.QueuedAt, rec.ContinuationOf, rec.ChainRootID = h.now, of, of
		return store.Restored{Record: rec}
	}
	before := h.record("before", thread.Continued)
	before.ContinuationThreadID = "linked"
	admitted := queued("admitted", "before")
	admitted.Record.AdmittedAt = h.now
	h.restore(queued("linked", "before"), admitted, queued("unlinked", "running"), queued("alone", "gone"),
		store.Restored{Record: before}, store.Restored{Record: h.record("running", thread.Running)})
	h.wantLoad(0, 1)
	for _, id := range []thread.ID{"admitted", "unlinked", "alone"} {
		if rec := h.get(id); !rec.QueuedAt.IsZero() || !rec.AdmittedAt.IsZero() || rec.Status != thread.Created {
			h.Errorf("not linked: %+v", rec)
		}
	}
	if rec := h.get("linked"); rec.ContinuationOf != "before" || rec.ChainRootID != "before" || h.get("before").ContinuationThreadID != "linked" {
		h.Errorf("linked: %+v", rec)
	}
	if id := h.admit(1); id != "linked" {
		h.Errorf("admitted %q", id)
	}
	h.apply(store.Claimed("linked", thread.Process{PID: 1, Host: "host"}, h.now))
}

// budgeted is a thread with a budget whose totals are nonsense.
func (h *harness) budgeted(id, parent thread.ID, most, own thread.Micros, active bool) store.Restored {
	state := thread.Running
	if !active {
		state = thread.Completed
	}
	return store.Restored{Record: h.record(id, state), Budget: &store.Budget{
		ParentID: parent, MaxSpend: most, Own: own, Active: active,
		Actual: 777, Reserved: 888, CreatedAt: h.now, UpdatedAt: h.now,
	}}
}

func restoreTotals(h *harness) {
	h.restore(
		h.budgeted("root", "", 100, 1, true),
		h.budgeted("ended", "root", 50, 2, false),
		h.budgeted("orphan", "ended", 20, 3, true),
		h.budgeted("done", "ended", 10, 4, false),
		h.budgeted("child", "root", 30, 5, true),
	)
	h.want("orphan", "ended", 20, 0, 3, 3, true)
	h.want("done", "ended", 10, 0, 4, 4, false)
	h.want("ended", "root", 50, 20, 6, 2, false)
	h.want("child", "root", 30, 0, 5, 5, true)
	h.want("root", "", 100, 50, 7, 1, true)
	for _, id := range []thread.ID{"child", "orphan", "root"} {
		h.settle(id)
	}
	h.want("root", "", 100, 0, 15, 1, false)
}

func restoreJoins(h *harness) {
	h.noError(h.OpenRoot(h.ctx, "root", 100, h.now))
	h.reserve("here", "root", 10)
	h.report("here", 4)
	done := h.restore(h.budgeted("root", "", 5, 5, false), h.budgeted("back", "root", 20, 3, true), h.budgeted("over", "here", 6, 6, false))
	if done.Budgets != 2 || done.Threads != 3 {
		h.Errorf("restored %+v", done)
	}
	h.want("here", "root", 10, 0, 10, 4, true)
	h.want("root", "", 100, 30, 0, 0, true)
}

// restoreModel restores the ledgers of random trees, in random order.
func restoreModel(h *harness) {
	runs := 0
	rapid.Check(h.T, func(t *rapid.T) {
		runs++
		m := &model{nodes: make(map[thread.ID]*node), name: fmt.Sprintf("restored%d", runs)}
		var ids []thread.ID
		var threads []store.Restored
		for i := range rapid.IntRange(1, 12).Draw(t, "threads") {
			n := &node{
				max:    thread.Micros(rapid.Int64Range(0, 100).Draw(t, "max")),
				active: rapid.Bool().Draw(t, "active"),
			}
			n.own = thread.Micros(rapid.Int64Range(0, int64(n.max)).Draw(t, "own"))
			if i > 0 {
				n.parent = rapid.SampledFrom(append(ids, "")).Draw(t, "parent")
			}
			id := thread.ID(fmt.Sprintf("%s-%d", m.name, i))
			ids, m.nodes[id] = append(ids, id), n
			threads = append(threads, h.budgeted(id, n.parent, n.max, n.own, n.active))
		}
		done, err := h.Restore(h.ctx, rapid.Permutation(threads).Draw(t, "order"))
		if err != nil || done.Budgets != len(threads) {
			t.Fatalf("restored %+v of %d, %v", done, len(threads), err)
		}
		r := &modelRun{h: h, m: m}
		r.match(t)
		for _, id := range rapid.Permutation(ids).Draw(t, "order of the end") {
			r.end(t, id)
		}
		r.match(t)
	})
}
