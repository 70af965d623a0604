package daily

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// attempts are two machines that have the threads of a project, each with the book of its user.
type attempts struct {
	*testing.T
	here, there *Store
	n           int
}

func newAttempts(t *testing.T) *attempts {
	shared, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, shared.Close()) })
	limit := thread.Micros(120)
	on := func(limit *thread.Micros) *Store {
		book, _ := newBook(t)
		return &Store{Store: shared, Book: book, Project: "/p", Limit: func() (*thread.Micros, error) { return limit, nil }}
	}
	return &attempts{T: t, here: on(&limit), there: on(nil)}
}

// begin registers a thread, with a budget from its parent or of its own.
func (a *attempts) begin(on *Store, most thread.Micros, n store.NewThread) thread.ID {
	a.Helper()
	a.n++
	n.ID, n.Kind, n.Directive, n.MaxSpawns, n.Now = thread.ID(fmt.Sprint("t-", a.n)), thread.KindDirective, "d", 5, noon
	rec, _, err := on.Register(a.Context(), n)
	must(a, err)
	switch {
	case n.ParentID == "":
		must(a, on.OpenRoot(a.Context(), rec.ThreadID, most, noon))
	case n.Retry:
		must(a, on.ReserveAfter(a.Context(), rec.ThreadID, n.ParentID, most, noon))
	default:
		must(a, on.Reserve(a.Context(), rec.ThreadID, n.ParentID, most, noon))
	}
	if n.Retry {
		must(a, on.Link(a.Context(), n.ContinuationOf, rec.ThreadID, noon))
	}
	_, err = on.Runner(rec.ThreadID, "").Apply(a.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, noon))
	must(a, err)
	return rec.ThreadID
}

// end ends a thread that has spent something; with again it failed, and is to be tried again.
func (a *attempts) end(on *Store, id thread.ID, spent thread.Micros, again bool) {
	a.Helper()
	by, o := on.Runner(id, ""), thread.Outcome{State: thread.Completed}
	if again {
		o = thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x"}, Retry: &thread.Retry{At: noon, Attempt: 2, Attempts: 3}}
	}
	must(a, by.Report(a.Context(), spent, noon))
	must(a, by.Settle(a.Context(), noon))
	change, err := store.Finished(id, o, nil, noon)
	must(a, err)
	_, err = by.Apply(a.Context(), change)
	must(a, err)
}

// counts is how the money of the day stands here, after the entry of a root was looked after.
func (a *attempts) counts(root thread.ID, spent, held thread.Micros) {
	a.Helper()
	must(a, a.here.Refresh(a.Context(), root))
	if got, err := a.here.Book.Today(a.Context()); err != nil || got.Spent != spent || got.Held != held {
		a.Errorf("today %+v, %v; want %d spent, %d held", got, err, spent, held)
	}
}

// TestAttemptsAreOneRoot: another attempt for a failed root is money of the day on which, and of
// the user for whom, the first was started, whoever makes it. Money that it may still spend is
// nobody else's meanwhile.
func TestAttemptsAreOneRoot(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"on another machine": true, "here": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttempts(t)
			on := a.here
			if elsewhere {
				on = a.there
			}
			first := a.begin(a.here, 100, store.NewThread{})
			a.end(on, first, 15, true)
			a.counts(first, 0, 100)
			second := a.begin(on, 85, store.NewThread{ContinuationOf: first, Retry: true})
			a.counts(first, 0, 100)
			var short *ExceededError
			if err := a.here.OpenRoot(t.Context(), "other", 21, noon); !errors.As(err, &short) || short.Left != 20 {
				t.Errorf("more than is left: %v", err)
			}
			a.end(on, second, 60, true)
			a.counts(first, 0, 100)
			third := a.begin(on, 25, store.NewThread{ContinuationOf: second, Retry: true})
			a.end(on, third, 5, false)
			a.counts(first, 80, 0)
		})
	}
}

// TestAttemptsBelow: money of a root that has ended is held for another attempt of a thread below it.
func TestAttemptsBelow(t *testing.T) {
	t.Parallel()
	a := newAttempts(t)
	root := a.begin(a.here, 100, store.NewThread{})
	child := a.begin(a.there, 40, store.NewThread{ParentID: root})
	a.end(a.there, child, 10, true)
	a.end(a.there, root, 5, false)
	a.counts(root, 0, 100)
	again := a.begin(a.there, 30, store.NewThread{ParentID: root, ContinuationOf: child, Retry: true})
	a.counts(root, 0, 100)
	a.end(a.there, again, 7, false)
	a.counts(root, 22, 0)
}

// TestDroppedAttempt: when no attempt is made after all the money is free again.
func TestDroppedAttempt(t *testing.T) {
	t.Parallel()
	a := newAttempts(t)
	root := a.begin(a.here, 100, store.NewThread{})
	a.end(a.here, root, 15, true)
	if _, err := a.here.DropRetry(t.Context(), root, "no", noon); err != nil {
		t.Fatal(err)
	}
	if got, err := a.here.Book.Today(t.Context()); err != nil || got.Spent != 15 || got.Held != 0 {
		t.Errorf("today %+v, %v", got, err)
	}
}
