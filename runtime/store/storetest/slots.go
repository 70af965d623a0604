package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var slotTests = []test{
	{"a thread that never had a process goes back to its place", returned},
	{"a thread that has a process, a cancel or no slot does not go back", notReturned},
	{"occupants are those that have a slot", occupants},
	{"stats count all rows", stats},
	{"active budgets are those not settled", activeBudgets},
}

func returned(h *harness) {
	first, second := h.enqueued(0).ThreadID, h.enqueued(0).ThreadID
	if got := h.admit(1); got != first {
		h.Fatalf("admitted %s", got)
	}
	rec, err := h.Return(h.ctx, first)
	h.noError(err)
	if !rec.Queued() {
		h.Errorf("returned %+v", rec)
	}
	h.wantLoad(0, 2)
	if got := []thread.ID{h.admit(2), h.admit(2)}; !slices.Equal(got, []thread.ID{first, second}) {
		h.Errorf("admitted %v", got)
	}
}

func notReturned(h *harness) {
	process, cancelled, ran := h.enqueued(3).ThreadID, h.enqueued(3).ThreadID, h.enqueued(3).ThreadID
	h.noError(h.SetProcess(h.ctx, process, thread.Process{PID: 4711, Host: "host"}))
	_, err := h.RequestCancel(h.ctx, cancelled, "", h.now)
	h.noError(err)
	h.apply(store.Claimed(ran, thread.Process{PID: 0, Host: "host"}, h.now))
	for _, id := range []thread.ID{process, cancelled, ran, h.enqueued(0).ThreadID, h.register("d", "")} {
		before := h.get(id)
		if _, err := h.Return(h.ctx, id); !errors.Is(err, thread.ErrSettled) {
			h.Errorf("returned %+v: %v", before, err)
		}
		if h.get(id).AdmittedAt != before.AdmittedAt {
			h.Errorf("%s has changed", id)
		}
	}
	if _, err := h.Return(h.ctx, "no/such"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("returned nobody: %v", err)
	}
}

func occupants(h *harness) {
	admitted, running, yielded, ended := h.enqueued(9).ThreadID, h.enqueued(9).ThreadID, h.enqueued(9).ThreadID, h.enqueued(9).ThreadID
	h.enqueued(0)
	h.register("d", "")
	for _, id := range []thread.ID{running, yielded} {
		h.apply(store.Claimed(id, thread.Process{PID: 1, Host: "host"}, h.now))
	}
	h.noError(h.Yield(h.ctx, yielded, true))
	h.apply(h.finished(ended, thread.Error))
	rows, err := h.Occupants(h.ctx)
	h.noError(err)
	var got []thread.ID
	for _, rec := range rows {
		got = append(got, rec.ThreadID)
	}
	slices.Sort(got)
	want := []thread.ID{admitted, running}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		h.Errorf("occupants %v, want %v", got, want)
	}
}

func stats(h *harness) {
	since := store.StatsSince{Used: h.now, Created: h.now}
	if got, err := h.Stats(h.ctx, since); err != nil || got != (store.Stats{}) {
		h.Errorf("of nothing: %+v, %v", got, err)
	}
	h.register("d", "")
	spender := h.running("d", "")
	h.noError(h.RecordCost(h.ctx, spender, thread.Cost{Turns: 1, Spend: 5}, 300))
	got, err := h.Stats(h.ctx, since)
	if want := (store.Stats{Threads: 2, Active: 2, AvgTokens: 150, MaxTokens: 300, Spend: 5}); err != nil || got != want {
		h.Errorf("stats %+v, %v; want %+v", got, err, want)
	}
	later := h.now.Add(100 * 365 * 24 * time.Hour)
	got, err = h.Stats(h.ctx, store.StatsSince{Used: later, Created: later})
	if want := (store.Stats{Threads: 2, AvgTokens: 150, MaxTokens: 300}); err != nil || got != want {
		h.Errorf("later: %+v, %v; want %+v", got, err, want)
	}
}

func activeBudgets(h *harness) {
	root, child := h.running("d", ""), thread.ID("child-1")
	h.noError(h.OpenRoot(h.ctx, root, 100, h.now))
	h.noError(h.Reserve(h.ctx, child, root, 40, h.now))
	active, err := h.Active(h.ctx)
	if err != nil || len(active) != 2 {
		h.Errorf("active %+v, %v", active, err)
	}
	h.noError(h.Settle(h.ctx, child, h.now))
	active, err = h.Active(h.ctx)
	if err != nil || len(active) != 1 || active[0].ThreadID != root || active[0].MaxSpend != 100 || active[0].Reserved != 0 {
		h.Errorf("active %+v, %v", active, err)
	}
}
