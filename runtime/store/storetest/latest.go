package storetest

import (
	"errors"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var latestTests = []test{
	{"the newest that has completed", latestCompleted},
	{"two trees do not mix", latestTrees},
	{"without one in the tree that of the project counts", latestOutside},
	{"what is above, and the own chain, do not count", latestOwn},
	{"a successor belongs to the tree of what it continues", latestSuccessor},
	{"a set stands for its entries", latestSet},
}

// ended is a thread of a directive that has ended in a state.
func ended(h *harness, directive string, parent thread.ID, as thread.State) thread.ID {
	h.Helper()
	id := h.running(directive, parent)
	h.apply(h.finished(id, as))
	return id
}

func wantLatest(h *harness, directive string, of, want thread.ID) {
	h.Helper()
	rec, err := h.Latest(h.ctx, directive, of)
	if want == "" {
		if !errors.Is(err, thread.ErrNotFound) {
			h.Errorf("latest %s of %q: %s, %v, want none", directive, of, rec.ThreadID, err)
		}
		return
	}
	if err != nil || rec.ThreadID != want {
		h.Errorf("latest %s of %q: %s, %v, want %s", directive, of, rec.ThreadID, err, want)
	}
}

func latestCompleted(h *harness) {
	wantLatest(h, "db", "", "")
	failed := ended(h, "db", "", thread.Error)
	wantLatest(h, "db", "", failed) // so that it can be told how it stands
	first := ended(h, "db", "", thread.Completed)
	wantLatest(h, "db", "", first)
	second := ended(h, "db", "", thread.Completed)
	ended(h, "db", "", thread.Cancelled)
	h.running("db", "")
	ended(h, "db2", "", thread.Completed)
	wantLatest(h, "db", "", second)
	n := h.newThread("db", "")
	n.Now = h.now.Add(-time.Hour) // the clock was put back
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	h.apply(store.Claimed(rec.ThreadID, thread.Process{PID: 4711, Host: "host"}, h.now))
	h.apply(h.finished(rec.ThreadID, thread.Completed))
	wantLatest(h, "db", "", second)
	n = h.newThread("db", "")
	n.Kind = thread.KindTool
	_, _, err = h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	wantLatest(h, "db", "", second)
	wantLatest(h, "d", "", "")
	for range 10 { // ids that end in -9 and -10
		second = ended(h, "db", "", thread.Completed)
	}
	wantLatest(h, "db", "", second)
	wantLatest(h, "db", "no-such-thread", second)
}

func latestTrees(h *harness) {
	a, b := h.running("wave", ""), h.running("wave", "")
	api := h.running("api", h.running("step", a))
	inA := ended(h, "db", a, thread.Completed)
	wantLatest(h, "db", api, inA)
	inB := ended(h, "db", b, thread.Completed) // newer, and of another tree
	wantLatest(h, "db", api, inA)
	wantLatest(h, "db", b, inB)
	wantLatest(h, "db", "", inB)
	below := ended(h, "db", h.running("step", a), thread.Completed) // deeper in the same tree
	ended(h, "db", a, thread.Error)
	wantLatest(h, "db", api, below)
	c := h.running("wave", "")
	failed := ended(h, "db", c, thread.Error)
	wantLatest(h, "db", h.running("api", c), failed) // and none of another tree
}

func latestOutside(h *harness) {
	before := ended(h, "db", "", thread.Completed)
	wave := h.running("wave", "")
	api := h.running("api", wave)
	wantLatest(h, "db", api, before)
	running := h.running("db", wave)
	wantLatest(h, "db", api, running)
	h.apply(h.finished(running, thread.Completed))
	wantLatest(h, "db", api, running)
}

func latestOwn(h *harness) {
	before := ended(h, "report", "", thread.Completed)
	report := h.running("report", "")
	wantLatest(h, "report", report, before)
	wantLatest(h, "report", h.running("part", report), before)
	h.apply(h.finished(report, thread.Completed))
	resumed := h.successor(report, false)
	h.noError(h.Link(h.ctx, report, resumed, h.now))
	wantLatest(h, "report", resumed, before)
	wantLatest(h, "report", "", report)
}

func latestSuccessor(h *harness) {
	wave := h.running("wave", "")
	db := ended(h, "db", wave, thread.Completed)
	h.apply(h.finished(wave, thread.Completed))
	next := h.successor(wave, false)
	h.noError(h.Link(h.ctx, wave, next, h.now))
	h.apply(store.Claimed(next, thread.Process{PID: 4711, Host: "host"}, h.now))
	ended(h, "db", "", thread.Completed) // of another tree
	wantLatest(h, "db", h.running("api", next), db)
}

func latestSet(h *harness) {
	id := h.set("mine", "hash", 2, "a")
	entry := h.entry(id, 0)
	h.apply(h.finished(entry, thread.Completed))
	wantLatest(h, "map", "", id)
	h.apply(h.finished(id, thread.Completed))
	wantLatest(h, "map", "", id)
	wantLatest(h, "map", entry, "")
}
