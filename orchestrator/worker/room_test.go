package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return pgstoretest.Connect(t).Pool()
}

// newFleet is one whose leases nobody renews and whose time passed says.
func newFleet(pool *pgxpool.Pool, passed *atomic.Int64) *fleet.Fleet {
	start := time.Now()
	return &fleet.Fleet{Pool: pool, TTL: time.Hour, Beat: time.Hour, Clock: func() time.Time { return start.Add(time.Duration(passed.Load())) }}
}

// TestRoom: a worker has room while it holds its lease, does not drain and has a slot free.
// One that was suspended knows that it has none before its lease has told it.
func TestRoom(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	slot, waits := fleet.Thread{ID: "a-1", Slot: true}, fleet.Thread{ID: "a-2"}
	for name, c := range map[string]struct {
		held     []fleet.Thread // in each of two projects
		err      error
		draining bool
		passed   time.Duration
		left     bool
		tables   error // what their look says
		space    error
		want     bool
	}{
		"nothing runs":           {want: true},
		"one slot is free":       {held: []fleet.Thread{slot}, want: true},
		"none is free":           {held: []fleet.Thread{slot, slot}},
		"those that wait":        {held: []fleet.Thread{waits, slot, waits}, want: true},
		"it cannot count":        {err: errors.New("no connection")},
		"newer tables":           {tables: store.ErrTooNew},
		"the server is away":     {tables: errors.New("no connection")},
		"its disk is full":       {space: errors.New("no space")},
		"it drains":              {draining: true},
		"shortly before":         {passed: 39 * time.Minute, want: true},
		"two thirds are over":    {passed: 40 * time.Minute},
		"suspended for a day":    {passed: 24 * time.Hour},
		"its lease was left":     {left: true},
		"its clock was set back": {passed: -24 * time.Hour, want: true}, // which no clock of a lease can be
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var passed atomic.Int64
			f := newFleet(pool, &passed)
			lease, err := f.Join(t.Context(), fleet.Worker{Name: name, Slots: 3})
			if err != nil {
				t.Fatal(err)
			}
			of := func(held []fleet.Thread) *Project {
				return &Project{Fits: func(context.Context) error { return c.tables }, Held: func(context.Context, thread.Incarnation) ([]fleet.Thread, error) { return held, c.err }}
			}
			w := &Worker{
				Fleet: f, Self: lease.Worker, Log: zerolog.Nop(), lease: lease, draining: c.draining, Space: func() error { return c.space },
				Projects: []*Project{of(c.held), of(c.held[:len(c.held)/2])},
			}
			if passed.Store(int64(c.passed)); c.left {
				_ = lease.Leave(t.Context())
			}
			done, room := w.Room(t.Context())
			if room != c.want {
				t.Fatalf("room %t, want %t", room, c.want)
			}
			if old := errors.Is(w.tooOld(), store.ErrTooNew); old != errors.Is(c.tables, store.ErrTooNew) {
				t.Errorf("it takes itself for too old: %t", old)
			}
			if !room {
				done, _ = (&Worker{Fleet: f}).Room(t.Context()) // neither has one that has not joined
			}
			if room == (done == nil) {
				t.Fatal("there is something to be done without room")
			}
			if room {
				if w.admitting.TryLock() {
					t.Error("two admit a thread at the same time")
				}
				done()
			}
			if !w.admitting.TryLock() {
				t.Error("nobody admits a thread any more")
			}
		})
	}
}

// TestGuest: what a guest starts or settles lives by one lease of its own, which is taken
// with the first and ends with the guest; below a worker it lives by the worker's.
func TestGuest(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	f, ctx := newFleet(newPool(t), &passed), t.Context()
	g := &Guest{
		Fleet: func(context.Context) (*fleet.Fleet, error) { return f, nil }, Project: "p", Self: fleet.Worker{Name: "host/1"}, Log: zerolog.Nop(),
	}
	defer g.Close()
	if g.Own() != "" {
		t.Error("it has a lease before it starts anything")
	}
	first := g.NewRun().Incarnation()
	if again := g.NewRun().Incarnation(); again != first || g.Own() != first {
		t.Errorf("its runs live by %s and %s, its own is %s", first, again, g.Own())
	}
	if alive, err := f.Alive(ctx, first); !alive || err != nil {
		t.Errorf("alive: %t, %v", alive, err)
	}
	passed.Store(int64(time.Hour)) // it was suspended
	if second := g.NewRun().Incarnation(); second == first || g.Own() != second {
		t.Errorf("after its lease was lost it goes on with %s", second)
	}
	done, room := g.Room(ctx)
	if done(); !room {
		t.Error("without a worker it has no room")
	}
	if _, err := f.Join(ctx, fleet.Worker{Name: "w", Slots: 1, Projects: []string{"p"}}); err != nil {
		t.Fatal(err)
	}
	if _, room = g.Room(ctx); room {
		t.Error("it takes a thread that is a worker's")
	}
	second := g.Own()
	g.Close()
	if alive, err := f.Alive(ctx, second); alive || err != nil {
		t.Errorf("after its end its lease goes on: %t, %v", alive, err)
	}

	under := &Guest{Under: first, Fleet: func(context.Context) (*fleet.Fleet, error) {
		return nil, errors.New("nobody is asked")
	}}
	if run := under.NewRun(); run.Incarnation() != first || under.Own() != first {
		t.Errorf("below worker %s it makes run %s", first, run)
	}
}
