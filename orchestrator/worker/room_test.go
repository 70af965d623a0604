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

// TestGuest: each run of a guest lives by a lease of its own. One by which no life was claimed is
// used again, and any other ends with the last life; below a worker all live by the worker's.
func TestGuest(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	f, ctx := newFleet(newPool(t), &passed), t.Context()
	g := newGuest(f, "host/1")
	defer g.Close()
	first, unclaimed := g.NewRun()
	second, claimed := g.NewRun()
	if first.Incarnation() == second.Incarnation() {
		t.Errorf("two runs live by %s", first.Incarnation())
	}
	wantAlive(t, f, first, true)
	unclaimed()
	again, unclaimed := g.NewRun()
	if again.Incarnation() != first.Incarnation() || again == first {
		t.Errorf("after run %s comes %s", first, again)
	}
	g.Take(second)
	claimed()
	g.Take(second) // the lock of its life was taken away, and is made anew
	g.Back(second)
	wantAlive(t, f, second, true)
	g.Back(second)
	awaitOver(t, f, second)
	unclaimed()
	passed.Store(int64(time.Hour)) // it was suspended
	next, _ := g.NewRun()
	if next.Incarnation() == first.Incarnation() {
		t.Errorf("after its lease was lost it goes on with %s", next)
	}
	left, room := g.Room(ctx)
	if left(); !room {
		t.Error("without a worker it has no room")
	}
	if _, err := f.Join(ctx, fleet.Worker{Name: "w", Slots: 1, Projects: []string{"p"}}); err != nil {
		t.Fatal(err)
	}
	if _, room = g.Room(ctx); room {
		t.Error("it takes a thread that is a worker's")
	}
	g.Close()
	wantAlive(t, f, first, false)
	wantAlive(t, f, next, false)

	by := first.Incarnation()
	under := &Guest{Under: by, Fleet: func(context.Context) (*fleet.Fleet, error) {
		return nil, errors.New("nobody is asked")
	}}
	if run, _ := under.NewRun(); run.Incarnation() != by || under.Own() != by || under.Inherit(ctx, run) != nil {
		t.Errorf("below worker %s it makes run %s", by, run)
	}
}

func newGuest(f *fleet.Fleet, name string) *Guest {
	return &Guest{
		Fleet: func(context.Context) (*fleet.Fleet, error) { return f, nil }, Project: "p",
		Self: fleet.Worker{Name: name, Machine: "m"}, Log: zerolog.Nop(),
	}
}

func wantAlive(t *testing.T, f *fleet.Fleet, run thread.Run, want bool) {
	t.Helper()
	if alive, err := f.Alive(t.Context(), run.Incarnation(), ""); alive != want || err != nil {
		t.Errorf("run %s is alive: %t, %v; want %t", run, alive, err, want)
	}
}

// awaitOver waits until the lease of a run has ended.
func awaitOver(t *testing.T, f *fleet.Fleet, run thread.Run) {
	t.Helper()
	for alive := true; alive; {
		var err error
		if alive, err = f.Alive(t.Context(), run.Incarnation(), ""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeaseOfAProcess: a lease given to the process of a thread goes on when the starter ends,
// and with that process alone; the starter ends it when the process is gone. Nobody on its own
// machine needs it, and a process does not end what a starter of an older version has for all.
func TestLeaseOfAProcess(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	f, ctx := newFleet(newPool(t), &passed), t.Context()
	starter, process := newGuest(f, "host/1"), newGuest(f, "host/2")
	give := func(ended chan struct{}) thread.Run {
		run, claimed := starter.NewRun()
		starter.Take(run)
		claimed()
		starter.Give(run, ended)
		starter.Take(run) // whoever writes its last files
		starter.Back(run)
		return run
	}
	ended := make(chan struct{})
	run, died := give(nil), give(ended)
	if next, _ := starter.NewRun(); next.Incarnation() == run.Incarnation() {
		t.Errorf("run %s lives by the lease of process %s", next, run)
	}
	wantAlive(t, f, died, true)
	close(ended)
	awaitOver(t, f, died)
	starter.Close()
	wantAlive(t, f, run, true)
	for machine, want := range map[string]bool{"m": false, "n": true} {
		if alive, err := f.Alive(ctx, run.Incarnation(), machine); alive != want || err != nil {
			t.Errorf("on machine %s it is alive: %t, %v", machine, alive, err)
		}
	}
	if err := process.Inherit(ctx, run); err != nil {
		t.Fatal(err)
	}
	process.Close()
	wantAlive(t, f, run, false)

	older, err := f.Join(ctx, fleet.Worker{Name: "older"})
	if err != nil {
		t.Fatal(err)
	}
	process = newGuest(f, "host/3")
	if err := process.Inherit(ctx, older.Incarnation.NewRun()); err != nil {
		t.Fatal(err)
	}
	process.Close()
	wantAlive(t, f, older.Incarnation.NewRun(), true)
}
