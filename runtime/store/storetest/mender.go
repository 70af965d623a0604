package storetest

import (
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var menderTests = []test{
	{"a thread is given other relatives", relate},
	{"an end is corrected, and a thread that goes on is not", correct},
	{"it is noted that records are gone", markGone},
	{"a budget without a thread is settled", release},
	{"a budget is counted anew", recount},
}

// says fails the test unless a change was made, or was not.
func (h *harness) says(want bool) func(changed bool, err error) {
	return func(changed bool, err error) {
		h.Helper()
		if h.noError(err); changed != want {
			h.Errorf("changed: %t, want %t", changed, want)
		}
	}
}

func relate(h *harness) {
	a, b := h.register("a", ""), h.register("b", "")
	none, child := store.Relatives{}, store.Relatives{Parent: a}
	h.says(false)(h.Mend().Relate(h.ctx, b, child, none)) // it has none
	h.says(true)(h.Mend().Relate(h.ctx, b, none, store.Relatives{Parent: a, ContinuationOf: "nobody", ContinuedBy: "nobody", ChainRoot: a}))
	if got := store.RelativesOf(h.get(b)); got != (store.Relatives{Parent: a, ChainRoot: a}) {
		h.Errorf("relatives %+v", got)
	}
	h.says(false)(h.Mend().Relate(h.ctx, b, none, child))
	h.says(false)(h.Mend().Relate(h.ctx, "nobody", none, none))
}

func correct(h *harness) {
	ended, runs := h.inState(thread.Completed), h.inState(thread.Running)
	rec := h.get(ended)
	rec.Status, rec.Outcome, rec.Cost = thread.Error, &thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x"}}, thread.Cost{Turns: 3, Spend: 9}
	rec.Directive = "other"
	h.says(true)(h.Mend().Correct(h.ctx, rec))
	h.says(false)(h.Mend().Correct(h.ctx, rec))
	if now := h.get(ended); now.Status != thread.Error || now.Outcome.Error.Code != "x" || now.Cost != rec.Cost || now.Directive != "other" ||
		!now.CompletedAt.Equal(rec.CompletedAt) {
		h.Errorf("corrected: %+v", now)
	}
	rec.ThreadID = h.register("queued", "")
	rec.Run = thread.NewRun()
	h.says(false)(h.Mend().Correct(h.ctx, rec))
	if _, err := h.Replace(h.ctx, rec.ThreadID, h.get(rec.ThreadID).Run, rec.Run); err != nil {
		h.Fatal(err)
	}
	h.says(true)(h.Mend().Correct(h.ctx, rec))
	if now := h.get(rec.ThreadID); now.Status != thread.Error || !now.CompletedAt.Equal(rec.UpdatedAt) {
		h.Errorf("ended: %+v", now)
	}
	rec.ThreadID = runs
	h.says(false)(h.Mend().Correct(h.ctx, rec))
	rec.Status = thread.Running
	if _, err := h.Mend().Correct(h.ctx, rec); err == nil {
		h.Error("a row was made to run")
	}
	if now := h.get(runs); now.Status != thread.Running {
		h.Errorf("the other one: %+v", now)
	}
}

func markGone(h *harness) {
	id, runs := h.inState(thread.Completed), h.inState(thread.Running)
	h.says(true)(h.Mend().MarkGone(h.ctx, id, h.now))
	h.says(false)(h.Mend().MarkGone(h.ctx, id, h.now.Add(time.Hour)))
	if got := string(h.get(id).Metadata); !strings.Contains(got, `"`+thread.MetadataRecordsGone+`":"2026-03-04T05:06:07Z"`) {
		h.Errorf("metadata %s", got)
	}
	h.says(true)(h.Mend().MarkGone(h.ctx, id, time.Time{}))
	h.says(false)(h.Mend().MarkGone(h.ctx, id, time.Time{}))
	h.says(false)(h.Mend().MarkGone(h.ctx, runs, h.now))
}

func release(h *harness) {
	parent := h.running("a", "")
	h.noError(h.OpenRoot(h.ctx, parent, 100, h.now))
	h.noError(h.Reserve(h.ctx, "nobody", parent, 30, h.now))
	h.says(false)(h.Mend().Release(h.ctx, parent, h.now)) // it has a row
	h.says(true)(h.Mend().Release(h.ctx, "nobody", h.now))
	h.says(false)(h.Mend().Release(h.ctx, "nobody", h.now))
	h.says(false)(h.Mend().Release(h.ctx, "unknown", h.now))
	found, err := h.Mend().Budgets(h.ctx, []thread.ID{parent, "nobody", "unknown"})
	if h.noError(err); len(found) != 2 || found[parent].Reserved != 0 || found["nobody"].Active {
		h.Errorf("budgets %+v", found)
	}
}

func recount(h *harness) {
	h.restore(h.budgeted("root", "", 100, 1, true), h.budgeted("child", "root", 50, 7, false))
	h.says(false)(h.Mend().AddUp(h.ctx))
	h.says(false)(h.Mend().Recount(h.ctx, "child", 8, 9)) // it says 7
	h.says(true)(h.Mend().Recount(h.ctx, "child", 7, 9))
	h.says(false)(h.Mend().Recount(h.ctx, "child", 7, 9))
	h.says(false)(h.Mend().Recount(h.ctx, "root", 1, 2)) // it is active, and its thread's
	if _, err := h.Mend().Recount(h.ctx, "child", 9, -1); err == nil {
		h.Error("less than nothing was spent")
	}
	b, err := h.Budget(h.ctx, "root")
	if h.noError(err); b.Actual != 10 || b.Own != 1 {
		h.Errorf("the root has %+v", b)
	}
	if off, err := h.Mend().Miscounted(h.ctx); err != nil || len(off) != 0 {
		h.Errorf("miscounted %v, %v", off, err)
	}
}
