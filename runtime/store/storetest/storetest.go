// Package storetest is the conformance suite of [store.Store]: what every
// implementation has to do, whatever it stores rows in. An implementation's own
// tests add what only it can show, such as several processes at once.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Run runs the suite, or some of it ("Queue", "List/filters"), for a store in front of another. Open returns
// a new, empty store each time it is called, and closes it through t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) store.Store, only ...string) {
	groups := []struct {
		name  string
		tests []test
	}{
		{"Register", registerTests},
		{"State", stateTests},
		{"List", listTests},
		{"Labels", labelTests},
		{"Cancel", cancelTests},
		{"Chain", chainTests},
		{"Queue", queueTests},
		{"Slots", slotTests},
		{"Changes", changesTests},
		{"Ledger", ledgerTests},
		{"Raise", raiseTests},
		{"HandOver", handOverTests},
		{"After", afterTests},
		{"Questions", questionTests},
		{"News", newsTests},
		{"Sets", setTests},
		{"Latest", latestTests},
		{"Census", censusTests},
		{"Glancer", glancerTests},
		{"Costs", costTests},
		{"Keep", keepTests},
		{"Mender", menderTests},
		{"Fence", fenceTests},
		{"Messages", messageTests},
		{"Handoffs", handoffTests},
		{"Retries", retryTests},
		{"Deletions", deletionTests},
	}
	for _, g := range groups {
		if len(only) > 0 && !slices.Contains(only, g.name) {
			g.tests = slices.DeleteFunc(slices.Clone(g.tests), func(tt test) bool { return !slices.Contains(only, g.name+"/"+tt.name) })
		}
		if len(g.tests) == 0 {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for _, tt := range g.tests {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					tt.run(newHarness(t, open(t)))
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(h *harness)
}

// giveUp ends a test that waits for something which never comes.
const giveUp = 2 * time.Minute

// harness is a store under test with what the tests need beside it.
type harness struct {
	*testing.T
	Any
	ctx context.Context //nolint:containedctx // lives as long as the test, like the T beside it
	now time.Time       // when everything in this test is created, unless it says otherwise
}

func newHarness(t *testing.T, s store.Store) *harness {
	ctx, cancel := context.WithTimeout(t.Context(), giveUp)
	t.Cleanup(cancel)
	return &harness{T: t, Any: Any{s}, ctx: ctx, now: time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)}
}

// noError ends the test on an error.
func (h *harness) noError(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// claimNothing is a claim function for ids that stand for nothing on disk.
func claimNothing(thread.ID) error { return nil }

// newThread is the description of a thread of directive, below parent if that
// is not empty.
func (h *harness) newThread(directive string, parent thread.ID) store.NewThread {
	return store.NewThread{
		Kind: thread.KindDirective, Directive: directive, ParentID: parent, MaxSpawns: 1000,
		Model: "fake/model", Now: h.now,
	}
}

// register registers a thread that must succeed.
func (h *harness) register(directive string, parent thread.ID) thread.ID {
	h.Helper()
	rec, created, err := h.Register(h.ctx, h.newThread(directive, parent), claimNothing)
	h.noError(err)
	if !created {
		h.Fatalf("thread %s existed", rec.ThreadID)
	}
	return rec.ThreadID
}

// running registers and claims a thread.
func (h *harness) running(directive string, parent thread.ID) thread.ID {
	h.Helper()
	id := h.register(directive, parent)
	h.apply(store.Claimed(id, thread.Process{PID: 4711, Host: "host"}, h.now))
	return id
}

func (h *harness) apply(c store.Change) thread.Record {
	h.Helper()
	rec, err := h.Apply(h.ctx, c)
	h.noError(err)
	return rec
}

func (h *harness) get(id thread.ID) thread.Record {
	h.Helper()
	rec, err := h.Get(h.ctx, id)
	h.noError(err)
	return rec
}

// finished is the change that ends a thread in a terminal state.
func (h *harness) finished(id thread.ID, to thread.State) store.Change {
	h.Helper()
	c, err := store.Finished(id, outcome(to), nil, h.now)
	h.noError(err)
	return c
}

// outcome is how a thread can end in a state. One that is continued names a
// successor that there is none of.
func outcome(s thread.State) thread.Outcome {
	o := thread.Outcome{State: s}
	if s == thread.Continued {
		o.Handoff = &thread.Handoff{NewThreadID: "nobody"}
	}
	return o
}

// inState returns a new thread that was brought to state by legal changes.
func (h *harness) inState(state thread.State) thread.ID {
	h.Helper()
	if state == thread.Created {
		return h.register("in-"+string(state), "")
	}
	id := h.running("in-"+string(state), "")
	if state != thread.Running {
		h.apply(h.finished(id, state))
	}
	return id
}

// atOnce runs f n times at once and returns the errors in the order of i.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			<-start
			errs[i] = f(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
	return errs
}

// ids are the ids of rows, in order.
func ids(rows []thread.Record) string {
	var list []thread.ID
	for _, r := range rows {
		list = append(list, r.ThreadID)
	}
	return fmt.Sprint(list)
}
