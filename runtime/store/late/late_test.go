package late

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

func registered(t *testing.T, s store.Store) (thread.Record, error) {
	t.Helper()
	rec, _, err := store.Register(t.Context(), s, store.NewThread{Kind: thread.KindDirective, Directive: "work", Now: time.Unix(1e9, 0)},
		func(thread.ID) error { return nil })
	return rec, err
}

// TestLate: until the first thread is registered there are none, looking makes no
// store, and who waits for changes is woken by the store coming to be.
func TestLate(t *testing.T) {
	t.Parallel()
	dir, made := t.TempDir(), 0
	var opened store.Store
	s := New(
		func(context.Context) (store.Store, error) { return opened, nil },
		func(ctx context.Context) (store.Store, error) {
			made++
			return sqlite.Open(ctx, dir, sqlite.Options{})
		})
	ctx := t.Context()
	changes, milestones := s.Changes(ctx), s.Milestones(ctx)
	rows, next, err := s.List(ctx, store.Filter{})
	if len(rows) > 0 || next != "" || err != nil {
		t.Errorf("list %v, %q, %v", rows, next, err)
	}
	if _, err := s.Get(ctx, "work-1"); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := s.Budget(ctx, "work-1"); !errors.Is(err, store.ErrNoBudget) {
		t.Errorf("budget: %v", err)
	}
	if _, err := s.Question(ctx, "q"); !errors.Is(err, store.ErrNoQuestion) {
		t.Errorf("question: %v", err)
	}
	if err := storetest.As(s).SetProcess(ctx, "work-1", thread.Process{}); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("a change: %v", err)
	}
	if load, err := s.QueueLoad(ctx); err != nil || load != (store.QueueLoad{}) {
		t.Errorf("line %+v, %v", load, err)
	}
	if made != 0 {
		t.Fatal("looking has made a store")
	}
	rec, err := registered(t, s)
	if err != nil || made != 1 {
		t.Fatalf("registered %+v, %v; %d were made", rec, err, made)
	}
	<-milestones
	<-changes
	if got, err := s.Get(ctx, rec.ThreadID); err != nil || got.ThreadID != rec.ThreadID {
		t.Errorf("get %+v, %v", got, err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, rec.ThreadID); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
	for range changes { // ends
	}
}

// TestFoundLater: what another process has made is there with the next look.
func TestFoundLater(t *testing.T) {
	t.Parallel()
	var opened store.Store
	s := New(func(context.Context) (store.Store, error) { return opened, nil }, nil)
	if now, err := s.Now(t.Context()); now != nil || err != nil {
		t.Fatalf("%v, %v", now, err)
	}
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := registered(t, db)
	if err != nil {
		t.Fatal(err)
	}
	opened = db
	if got, err := s.Get(t.Context(), rec.ThreadID); err != nil || got.ThreadID != rec.ThreadID {
		t.Errorf("get %+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestNeverMade: a store that never came to be ends all the same.
func TestNeverMade(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	s := New(func(context.Context) (store.Store, error) { return nil, nil },
		func(context.Context) (store.Store, error) { return nil, failed })
	changes := s.Changes(t.Context())
	if _, err := registered(t, s); !errors.Is(err, failed) {
		t.Errorf("registered: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range changes { // ends
	}
}

// TestChecksWithoutStore: a filter that no store would take is refused while there is
// none, and so is a place in a list that nobody has given out.
func TestChecksWithoutStore(t *testing.T) {
	t.Parallel()
	none := func(context.Context) (store.Store, error) { return nil, nil }
	s := New(none, none)
	for _, f := range []store.Filter{
		{Sort: store.Sort{By: "wat"}}, {States: []thread.State{"wat"}}, {Limit: -1}, {Metadata: []byte(`[1]`)}, {Cursor: "wat"},
	} {
		if _, _, err := s.List(t.Context(), f); err == nil {
			t.Errorf("%+v was not refused", f)
		}
	}
	if err := s.ShowPlan(t.Context(), "cleanup", store.ShownPlan{Digest: "d", At: time.Now()}); err != nil {
		t.Errorf("a plan of nothing: %v", err)
	}
	if rows, next, err := s.List(t.Context(), store.Filter{Text: "a"}); err != nil || len(rows) > 0 || next != "" {
		t.Errorf("%v, %q, %v", rows, next, err)
	}
}

// TestSuite: a store that is made when the first thread is registered does what every
// store does.
func TestSuite(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		dir := t.TempDir()
		s := New(
			func(context.Context) (store.Store, error) { return nil, nil },
			func(ctx context.Context) (store.Store, error) { return sqlite.Open(ctx, dir, sqlite.Options{}) })
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}, "Register", "State", "Chain", "Queue", "Fence")
}
