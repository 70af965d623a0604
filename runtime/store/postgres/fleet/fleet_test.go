package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// hour is a lease that does not run out by itself while a test runs; tests let time pass by
// moving what the database has written, and the clock of a worker.
const hour = time.Hour

// world is a fleet whose time the test decides.
type world struct {
	pool   *pgxpool.Pool
	passed time.Duration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{pool: pgstoretest.Connect(t).Pool()}
}

// fleet is as a worker sees it, whose clock goes as the database's does.
func (w *world) fleet() *fleet.Fleet {
	start := time.Now()
	return &fleet.Fleet{Pool: w.pool, TTL: hour, Beat: hour / 4, Clock: func() time.Time { return start.Add(w.passed) }}
}

// pass lets time pass for everybody.
func (w *world) pass(ctx context.Context, t rapid.TB, d time.Duration) {
	w.passed += d
	if _, err := w.pool.Exec(ctx, `UPDATE rye.workers SET lease_until = lease_until - $1::bigint * interval '1 millisecond'`, d.Milliseconds()); err != nil {
		t.Fatal(err)
	}
}

func lost(l *fleet.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// TestLeases holds leases against a model: of workers that share names, that renew, drain,
// leave, are suspended and come again. One name has one lease; a lease that has run out stays so; and
// a worker that takes itself for alive is alive for all others.
func TestLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		if _, err := w.pool.Exec(ctx, `DELETE FROM rye.workers`); err != nil {
			t.Fatal(err)
		}
		f := w.fleet()
		var leases []*fleet.Lease
		until := map[*fleet.Lease]time.Duration{} // by the model, in time passed
		alive := func(l *fleet.Lease) bool { return until[l] > w.passed }
		some := func(t *rapid.T) *fleet.Lease {
			if len(leases) == 0 {
				t.Skip("nobody")
			}
			return rapid.SampledFrom(leases).Draw(t, "lease")
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "ünïcode \"'; --"}).Draw(t, "name")
				l, err := f.Join(ctx, fleet.Worker{Name: name, Slots: 1, Projects: []string{"p"}})
				var taken bool
				for _, other := range leases {
					taken = taken || other.Name == name && alive(other)
				}
				if _, refused := errors.AsType[*fleet.NameTakenError](err); refused != taken || err != nil && !refused {
					t.Fatalf("join %q: %v; taken %t", name, err, taken)
				}
				if err == nil {
					leases = append(leases, l)
					until[l] = w.passed + hour
				}
			},
			"pass": func(t *rapid.T) {
				w.pass(ctx, t, time.Duration(rapid.IntRange(1, 70).Draw(t, "minutes"))*time.Minute)
			},
			"renew": func(t *rapid.T) {
				l := some(t)
				err := l.Renew(ctx)
				if may := alive(l) && until[l]-w.passed > hour/3 && !lost(l); may != (err == nil) || err != nil && !errors.Is(err, fleet.ErrLost) {
					t.Fatalf("renew with %s left: %v", until[l]-w.passed, err)
				}
				if err == nil {
					until[l] = w.passed + hour
				}
			},
			"leave": func(t *rapid.T) {
				l := some(t)
				if err := l.Leave(ctx); err != nil {
					t.Fatal(err)
				}
				until[l] = min(until[l], w.passed)
			},
			"": func(t *rapid.T) {
				served := false
				for _, l := range leases {
					got, err := f.Alive(ctx, l.Incarnation, "")
					if err != nil || got != alive(l) {
						t.Fatalf("%s is alive: %t, %v; want %t", l.Name, got, err, alive(l))
					}
					served = served || got
				}
				if got, err := f.Serves(ctx, "p"); err != nil || got != served {
					t.Fatalf("served: %t, %v", got, err)
				}
			},
		})
	})
}

// TestNameTaken: the second worker of a name is told who the first is, and takes over when
// that one's lease has run out; the first then renews nothing.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, ctx := w.fleet(), t.Context()
	first, err := f.Join(ctx, fleet.Worker{Name: "n", Slots: 2, Process: thread.Process{Host: "here", PID: 7}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Join(ctx, fleet.Worker{Name: "n", Slots: 1})
	taken, ok := errors.AsType[*fleet.NameTakenError](err)
	if !ok || taken.Host != "here" || taken.PID != 7 || !strings.Contains(err.Error(), `named "n"`) {
		t.Fatal(err)
	}
	w.pass(ctx, t, hour)
	second, err := f.Join(ctx, fleet.Worker{Name: "n", Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Renew(ctx); !errors.Is(err, fleet.ErrLost) || !lost(first) {
		t.Errorf("the first renews: %v", err)
	}
	if alive, err := f.Alive(ctx, first.Incarnation, ""); alive || err != nil {
		t.Errorf("the first is alive: %v", err)
	}
	if err := second.Renew(ctx); err != nil {
		t.Error(err)
	}
}

// TestDrain: a worker that drains is alive, and takes nothing; that one is shown for a day
// after it has left.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, ctx := w.fleet(), t.Context()
	l, err := f.Join(ctx, fleet.Worker{Name: "n", Slots: 2, Version: "v1", Projects: []string{"p"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	alive, err := f.Alive(ctx, l.Incarnation, "")
	served, err2 := f.Serves(ctx, "p")
	if !alive || served || err != nil || err2 != nil {
		t.Errorf("alive %t, %v; serves %t, %v", alive, err, served, err2)
	}
	if err := l.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	seen, err := f.Workers(ctx)
	if err != nil || len(seen) != 1 || seen[0].Alive || !seen[0].Draining || seen[0].Version != "v1" || seen[0].Incarnation != l.Incarnation {
		t.Errorf("%+v, %v", seen, err)
	}
	if n, err := f.Forget(ctx); n != 0 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	w.pass(ctx, t, 25*time.Hour)
	if n, err := f.Forget(ctx); n != 1 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
}

// TestUnreachable: a worker whose server does not answer is lost at two thirds of its lease,
// not before.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, ctx := w.fleet(), t.Context()
	own, err := pgxpool.New(ctx, w.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	f.Pool = own
	l, err := f.Join(ctx, fleet.Worker{Name: "n", Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	w.pass(ctx, t, hour/2)
	if err := l.Renew(ctx); err == nil || errors.Is(err, fleet.ErrLost) || lost(l) {
		t.Errorf("after half of it: %v", err)
	}
	w.pass(ctx, t, hour/6+time.Minute)
	if err := l.Keep(ctx); !errors.Is(err, fleet.ErrLost) || !lost(l) {
		t.Errorf("after two thirds: %v", err)
	}
	if alive, err := w.fleet().Alive(ctx, l.Incarnation, ""); !alive || err != nil {
		t.Errorf("others see it alive until it has run out: %t, %v", alive, err)
	}
}

// TestClockJumps: the clock of the database alone jumps, which is as if the times that it has
// written did. Ahead, every lease has run out for everybody; back, those that are renewed are
// as before, and one that is not lasts longer.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, ctx := w.fleet(), t.Context()
	jump := func(d time.Duration) {
		before := w.passed
		w.pass(ctx, t, d)
		w.passed = before
	}
	join := func(name string) *fleet.Lease {
		t.Helper()
		l, err := f.Join(ctx, fleet.Worker{Name: name, Slots: 1})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	wantAlive := func(l *fleet.Lease, want bool) {
		t.Helper()
		if got, err := f.Alive(ctx, l.Incarnation, ""); got != want || err != nil {
			t.Errorf("%s is alive: %t, %v; want %t", l.Name, got, err, want)
		}
	}
	ahead := join("a")
	jump(24 * time.Hour)
	wantAlive(ahead, false)
	if err := ahead.Renew(ctx); !errors.Is(err, fleet.ErrLost) || !lost(ahead) {
		t.Errorf("after the jump it renews: %v", err)
	}
	again, gone := join("a"), join("b")
	jump(-24 * time.Hour)
	if err := again.Renew(ctx); err != nil {
		t.Error(err)
	}
	jump(hour + time.Minute)
	wantAlive(again, false) // its renewal has made it as long as any
	wantAlive(gone, true)
	jump(24 * time.Hour)
	wantAlive(gone, false)
}
