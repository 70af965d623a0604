package storetest

import (
	"errors"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var fenceTests = []test{
	{"a run that was replaced can write nothing", (*harness).replacedWritesNothing},
	{"an admission replaces the run", (*harness).admissionReplaces},
	{"of several who replace a run one does", (*harness).replacedOnce},
	{"a thread that has ended has its run for good", (*harness).notReplacedAfterTheEnd},
	{"a row without a run is that of the first write", (*harness).firstWriteTakes},
	{"a budget follows the registry", (*harness).budgetFollows},
}

// withRun registers a thread, below parent if that is not empty, with a run and a budget.
func (h *harness) withRun(run thread.Run, parent thread.ID) thread.ID {
	h.Helper()
	n := h.newThread("fenced", parent)
	n.Run = run
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	if rec.Run != run {
		h.Fatalf("registered with run %q: %+v", run, rec)
	}
	if parent == "" {
		h.noError(h.OpenRoot(h.ctx, rec.ThreadID, 1000, h.now))
	} else {
		h.noError(h.Reserve(h.ctx, rec.ThreadID, parent, 100, h.now))
	}
	return rec.ThreadID
}

// writes are all that a run can write, by name.
func (h *harness) writes(r store.Runner, successor thread.ID) map[string]func() error {
	id, _ := r.Of()
	question := thread.Question{ID: "q of " + string(id), ThreadID: id, AskedAt: h.now, DeadlineAt: h.now}
	return map[string]func() error{
		"claim": func() error {
			_, err := r.Apply(h.ctx, store.Claimed(id, thread.Process{PID: 4711}, h.now))
			return err
		},
		"end":       func() error { _, err := r.Apply(h.ctx, h.finished(id, thread.Completed)); return err },
		"return":    func() error { _, err := r.Return(h.ctx); return err },
		"process":   func() error { return r.SetProcess(h.ctx, thread.Process{PID: 4711}) },
		"yield":     func() error { return r.Yield(h.ctx, true) },
		"cost":      func() error { return r.RecordCost(h.ctx, thread.Cost{Turns: 7}, 7) },
		"ask":       func() error { return r.Ask(h.ctx, question) },
		"pledge":    func() error { return r.Pledge(h.ctx, 10, h.now) },
		"report":    func() error { return r.Report(h.ctx, 77, h.now) },
		"raise":     func() error { return r.Raise(h.ctx, 2000, h.now) },
		"settle":    func() error { return r.Settle(h.ctx, h.now) },
		"hand over": func() error { _, err := r.HandOver(h.ctx, successor, h.now); return err },
	}
}

func (h *harness) budget(id thread.ID) store.Budget {
	h.Helper()
	b, err := h.Budget(h.ctx, id)
	h.noError(err)
	return b
}

// wantFenced makes all writes of a run, each of which must be refused and change nothing.
func (h *harness) wantFenced(r store.Runner) {
	h.Helper()
	id, run := r.Of()
	row, budget := h.get(id), h.budget(id)
	for name, write := range h.writes(r, "nobody-1") {
		if err := write(); !errors.Is(err, store.ErrFenced) || !errors.Is(err, thread.ErrSettled) {
			h.Errorf("%s by run %q: %v", name, run, err)
		}
	}
	if now := h.get(id); now.UpdatedAt != row.UpdatedAt || now.Run != row.Run || now.Status != row.Status || now.Cost != row.Cost || now.Process != row.Process {
		h.Errorf("row %+v, was %+v", now, row)
	}
	if now := h.budget(id); now != budget {
		h.Errorf("budget %+v, was %+v", now, budget)
	}
	if asked, err := h.Questions(h.ctx, store.QuestionFilter{ThreadID: id}); len(asked) > 0 || err != nil {
		h.Errorf("asked %+v, %v", asked, err)
	}
}

func (h *harness) replacedWritesNothing() {
	for _, running := range []bool{false, true} {
		id := h.withRun("first", "")
		first := h.Runner(id, "first")
		if running {
			_, err := first.Apply(h.ctx, store.Claimed(id, thread.Process{PID: 1}, h.now))
			h.noError(err)
			h.noError(first.Report(h.ctx, 5, h.now)) // the ledger knows it
		}
		h.wantFenced(h.Runner(id, "never"))
		h.wantFenced(h.Runner(id, ""))
		rec, err := h.Replace(h.ctx, id, "first", "second")
		h.noError(err)
		if rec.Run != "second" {
			h.Errorf("replaced: %+v", rec)
		}
		h.wantFenced(first)

		second := h.Runner(id, "second")
		h.noError(second.Report(h.ctx, 9, h.now))
		h.noError(second.Settle(h.ctx, h.now))
		_, err = second.Apply(h.ctx, h.finished(id, thread.Error))
		h.noError(err)
		if b := h.budget(id); b.Own != 9 || b.Active {
			h.Errorf("budget %+v", b)
		}
		h.wantFenced(first)
	}
}

func (h *harness) admissionReplaces() {
	id := h.withRun("starter", "")
	starter := h.Runner(id, "starter")
	h.noError(starter.Report(h.ctx, 5, h.now))
	_, err := h.Enqueue(h.ctx, id, 0, h.now)
	h.noError(err)
	rec, admitted, err := store.Admit(h.ctx, h.Store, 1, h.now, "dispatcher", claimRecord)
	if err != nil || !admitted || rec.ThreadID != id || rec.Run != "dispatcher" {
		h.Fatalf("admitted %+v, %t, %v", rec, admitted, err)
	}
	h.wantFenced(starter)
	_, err = h.Runner(id, "dispatcher").Return(h.ctx)
	h.noError(err)
	if _, _, err := store.Admit(h.ctx, h.Store, 1, h.now, "another", claimRecord); err != nil {
		h.Fatal(err)
	}
	h.wantFenced(h.Runner(id, "dispatcher"))
}

func (h *harness) replacedOnce() {
	id := h.withRun("first", "")
	h.noError(h.Runner(id, "first").Report(h.ctx, 1, h.now))
	const many = 8
	name := func(i int) thread.Run { return thread.Run(strings.Repeat("x", i+1)) }
	won := -1
	for i, err := range atOnce(many, func(i int) error {
		_, err := h.Replace(h.ctx, id, "first", name(i))
		return err
	}) {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			h.Errorf("%d has replaced it and %d too", won, i)
		case !errors.Is(err, store.ErrFenced):
			h.Errorf("%d: %v", i, err)
		}
	}
	for i := range many {
		if i != won {
			h.wantFenced(h.Runner(id, name(i)))
		}
	}
	h.noError(h.Runner(id, name(won)).Report(h.ctx, 2, h.now))
}

func (h *harness) notReplacedAfterTheEnd() {
	id := h.withRun("first", "")
	_, err := h.Runner(id, "first").Apply(h.ctx, h.finished(id, thread.Cancelled))
	h.noError(err)
	if _, err := h.Replace(h.ctx, id, "first", "second"); !errors.Is(err, thread.ErrSettled) || errors.Is(err, store.ErrFenced) {
		h.Errorf("replaced after the end: %v", err)
	}
	if _, err := h.Replace(h.ctx, "no/such", "", "second"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("replaced without a row: %v", err)
	}
	h.noError(h.Runner(id, "first").Settle(h.ctx, h.now)) // what a crash had left undone
}

// firstWriteTakes: as after an upgrade, or where the registry was lost.
func (h *harness) firstWriteTakes() {
	id := h.withRun("", "")
	first := h.Runner(id, "first")
	_, err := first.Apply(h.ctx, store.Claimed(id, thread.Process{PID: 1}, h.now))
	h.noError(err)
	if rec := h.get(id); rec.Run != "first" {
		h.Errorf("claimed: %+v", rec)
	}
	h.noError(first.Pledge(h.ctx, 1, h.now))
	h.wantFenced(h.Runner(id, "second"))
	h.wantFenced(h.Runner(id, ""))

	old := h.withRun("", "")
	if _, err := h.Replace(h.ctx, old, "", "second"); err != nil {
		h.Error(err)
	}
	h.wantFenced(h.Runner(old, ""))
}

// budgetFollows: what a run may write to the ledger the registry decides, whoever has
// written there before.
func (h *harness) budgetFollows() {
	parent := h.withRun("parent", "")
	_, err := h.Runner(parent, "parent").Apply(h.ctx, store.Claimed(parent, thread.Process{PID: 1}, h.now))
	h.noError(err)
	child := h.withRun("first", parent)
	if _, err := h.Replace(h.ctx, child, "first", "second"); err != nil { // nobody has written yet
		h.Fatal(err)
	}
	h.wantFenced(h.Runner(child, "first"))
	h.noError(h.Runner(child, "second").Report(h.ctx, 5, h.now))
	if _, err := h.Replace(h.ctx, child, "second", "third"); err != nil {
		h.Fatal(err)
	}
	h.wantFenced(h.Runner(child, "second"))
	h.noError(h.Runner(child, "third").Settle(h.ctx, h.now))
	if b := h.budget(parent); b.Reserved != 0 || b.Actual != 5 {
		h.Errorf("budget of the parent %+v", b)
	}
	h.noError(h.Runner(parent, "parent").Report(h.ctx, 1, h.now)) // its children's ends fence it not
}
