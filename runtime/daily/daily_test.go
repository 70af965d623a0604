package daily

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local)

func newBook(t testing.TB) (*Book, *time.Time) {
	now := noon
	return &Book{Path: Path(t.TempDir()), Now: func() time.Time { return now }}, &now
}

func root(n int) Entry { return Entry{Project: "/p", ThreadID: thread.ID(fmt.Sprint("root-", n))} }

func closed(id thread.ID, spent thread.Micros) func() (store.Exposure, error) {
	return func() (store.Exposure, error) { return store.Exposure{Root: id, Most: spent}, nil }
}

func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBook follows roots over a midnight: open ones count whole on every day, ended
// ones with what they have cost on the day of their end.
func TestBook(t *testing.T) {
	t.Parallel()
	b, now := newBook(t)
	ctx := t.Context()
	must(t, b.Update(ctx, "/p", closed("nobody", 5)))
	if _, err := os.Stat(b.Path); !os.IsNotExist(err) {
		t.Fatalf("a book nobody needs: %v", err)
	}
	must(t, b.Enter(ctx, root(1), 60, 100))
	must(t, b.Enter(ctx, root(1), 60, 100)) // again
	var short *ExceededError
	if err := b.Enter(ctx, root(2), 41, 100); !errors.As(err, &short) || short.Left != 40 || short.Limit != 100 || short.Asked != 41 ||
		!short.Renews.Equal(time.Date(2026, 11, 23, 0, 0, 0, 0, time.Local)) {
		t.Fatalf("more than is left: %v", err)
	}
	must(t, b.Enter(ctx, root(2), 40, 100))
	must(t, b.Update(ctx, "/p", closed(root(1).ThreadID, 10)))
	total := func(spent, held thread.Micros) {
		t.Helper()
		if got, err := b.Today(ctx); err != nil || got.Spent != spent || got.Held != held {
			t.Errorf("today %+v, %v; want %d spent, %d held", got, err, spent, held)
		}
	}
	total(10, 40)
	*now = now.Add(24 * time.Hour)
	total(0, 40)
	if err := b.Enter(ctx, root(3), 61, 100); !errors.As(err, &short) || short.Left != 60 {
		t.Errorf("on the next day: %v", err)
	}
	must(t, b.Update(ctx, "/p", closed(root(2).ThreadID, 25)))
	total(25, 0)
	must(t, b.Update(ctx, "/p", closed(root(2).ThreadID, 25))) // again
	must(t, b.Enter(ctx, root(3), 75, 100))
	must(t, b.Drop(ctx, root(3)))
	total(100, 0)
	*now = now.Add(24 * time.Hour)
	total(0, 0)
	if info, err := os.Stat(b.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestUpdateMovesNothing: a root that has ended counts on the day of its end, however often that is
// told; one that is open is not lowered, and counts on the day of its beginning when nobody can find it.
func TestUpdateMovesNothing(t *testing.T) {
	t.Parallel()
	b, now := newBook(t)
	ctx := t.Context()
	open := func(id thread.ID, most thread.Micros) func() (store.Exposure, error) {
		return func() (store.Exposure, error) { return store.Exposure{Root: id, Most: most, Open: true}, nil }
	}
	total := func(spent, held thread.Micros) {
		t.Helper()
		if got, err := b.Today(ctx); err != nil || got.Spent != spent || got.Held != held {
			t.Errorf("today %+v, %v; want %d spent, %d held", got, err, spent, held)
		}
	}
	must(t, b.Enter(ctx, root(1), 60, 100))
	must(t, b.Update(ctx, "/p", closed(root(1).ThreadID, 25)))
	total(25, 0)
	*now = now.Add(24 * time.Hour)
	must(t, b.Update(ctx, "/p", closed(root(1).ThreadID, 25)))
	total(0, 0)

	must(t, b.Enter(ctx, root(2), 60, 100))
	must(t, b.Update(ctx, "/p", open(root(2).ThreadID, 10)))
	total(0, 60)
	var short *ExceededError
	if err := b.Enter(ctx, root(3), 41, 100); !errors.As(err, &short) || short.Left != 40 {
		t.Errorf("more than is left: %v", err)
	}
	must(t, b.Update(ctx, "/p", open(root(2).ThreadID, 70)))
	total(0, 70)
	*now = now.Add(24 * time.Hour)
	must(t, b.Update(ctx, "/p", open(root(2).ThreadID, 70)))
	must(t, b.Drop(ctx, root(2)))
	total(0, 0)
}

// TestEnteredAtOnce: however many processes start roots at once, no more are let in
// than fit.
func TestEnteredAtOnce(t *testing.T) {
	t.Parallel()
	b, _ := newBook(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	let := 0
	for i := range 20 {
		group.Go(func() {
			own := *b
			err := own.Enter(context.Background(), root(i), 10, 55)
			mu.Lock()
			defer mu.Unlock()
			if short := new(ExceededError); err == nil {
				let++
			} else if !errors.As(err, &short) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if let != 5 {
		t.Errorf("%d were let in", let)
	}
}

// ledgers are two projects of one user.
type ledgers struct {
	stores [2]*Store
	limit  thread.Micros
	ids    [2][]thread.ID
	n      int
}

// TestDayIsNeverOverspent: whatever threads of two projects do, and wherever between
// ledger and book a process dies, all roots together cannot come to more than the
// limit; and when all have ended the book has what they cost.
func TestDayIsNeverOverspent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var opened [2]*sqlite.Store
	for i := range opened {
		var err error
		opened[i], err = sqlite.Open(t.Context(), filepath.Join(dir, fmt.Sprint(i)), sqlite.Options{})
		must(t, err)
		t.Cleanup(func() { _ = opened[i].Close() })
	}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		l := &ledgers{limit: thread.Micros(rapid.Int64Range(0, 500).Draw(rt, "limit"))}
		book := &Book{Path: filepath.Join(dir, fmt.Sprint("book", runs)), Now: func() time.Time { return noon }}
		for i := range l.stores {
			l.stores[i] = &Store{Store: opened[i], Book: book, Project: fmt.Sprint(i), Limit: func() (*thread.Micros, error) { return &l.limit, nil }}
		}
		for range rapid.IntRange(1, 25).Draw(rt, "operations") {
			l.step(rt, fmt.Sprint("run", runs))
			l.withinLimit(rt)
		}
		var spent thread.Micros
		for i, s := range l.stores {
			for _, id := range l.ids[i] {
				must(rt, storetest.As(s).Settle(rt.Context(), id, noon))
			}
			for _, id := range l.ids[i] {
				must(rt, s.Refresh(rt.Context(), l.rootOf(rt, i, id)))
				b, err := s.Budget(rt.Context(), id)
				must(rt, err)
				spent += b.Own
			}
		}
		if got, err := book.Today(rt.Context()); err != nil || got.Held != 0 || got.Spent != spent {
			rt.Fatalf("the book says %+v, %v; spent were %d", got, err, spent)
		}
	})
}

func (l *ledgers) rootOf(t *rapid.T, i int, id thread.ID) thread.ID {
	x, err := l.stores[i].Exposure(t.Context(), id)
	must(t, err)
	return x.Root
}

// withinLimit holds what all roots can come to against the limit.
func (l *ledgers) withinLimit(t *rapid.T) {
	var sum thread.Micros
	for i, s := range l.stores {
		seen := map[thread.ID]bool{}
		for _, id := range l.ids[i] {
			x, err := s.Exposure(t.Context(), id)
			must(t, err)
			if !seen[x.Root] {
				sum += x.Most
			}
			seen[x.Root] = true
		}
	}
	if sum > l.limit {
		t.Fatalf("all roots can come to %d, and the limit is %d", sum, l.limit)
	}
}

// step is one operation on the store, or, where a process dies, on the ledger alone.
func (l *ledgers) step(t *rapid.T, name string) {
	i := rapid.IntRange(0, 1).Draw(t, "project")
	s, ctx := l.stores[i], t.Context()
	amount := thread.Micros(rapid.Int64Range(0, 200).Draw(t, "amount"))
	l.n++
	fresh := thread.ID(fmt.Sprintf("%s-%d", name, l.n))
	if len(l.ids[i]) == 0 || rapid.IntRange(0, 3).Draw(t, "what") == 0 {
		if err := s.OpenRoot(ctx, fresh, amount, noon); err == nil {
			l.ids[i] = append(l.ids[i], fresh)
		}
		return
	}
	id := rapid.SampledFrom(l.ids[i]).Draw(t, "thread")
	b, err := s.Budget(ctx, id)
	must(t, err)
	switch rapid.IntRange(0, 6).Draw(t, "operation") {
	case 0:
		if s.Reserve(ctx, fresh, id, amount, noon) == nil {
			l.ids[i] = append(l.ids[i], fresh)
		}
	case 1:
		if !b.Active && s.ReserveAfter(ctx, fresh, id, amount, noon) == nil {
			l.ids[i] = append(l.ids[i], fresh)
		}
	case 2:
		if b.Active {
			must(t, storetest.As(s).Report(ctx, id, b.Own+min(amount, max(0, b.Remaining())), noon))
		}
	case 3:
		must(t, storetest.As(s).Settle(ctx, id, noon))
	case 4: // killed between ledger and book
		must(t, storetest.As(s.Store).Settle(ctx, id, noon))
	case 5:
		_ = storetest.As(s).Raise(ctx, id, b.MaxSpend+amount, noon)
	case 6:
		if _, err := storetest.As(s).HandOver(ctx, id, fresh, noon); err == nil {
			l.ids[i] = append(l.ids[i], fresh)
		}
	}
}

// TestSuite: a store that keeps a book does what every store does, where the day has
// money enough.
func TestSuite(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		inner, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, inner.Close()) })
		book, _ := newBook(t)
		plenty := thread.Micros(1 << 50)
		return &Store{Store: inner, Book: book, Project: "/p", Limit: func() (*thread.Micros, error) { return &plenty, nil }}
	}, "Raise", "HandOver", "After", "Fence")
}
