package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/delivery"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/mirrors"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// scene is a project with a worker that is alive.
type scene struct {
	*testing.T

	server *postgres.Server
	store  *postgres.Store
}

func newScene(t *testing.T) *scene {
	t.Helper()
	server := pgstoretest.Connect(t)
	return &scene{t, server, pgstoretest.Project(t, server, "team/app")}
}

func (s *scene) join() {
	s.Helper()
	f := &fleet.Fleet{Pool: s.server.Pool(), TTL: time.Hour}
	if _, err := f.Join(s.Context(), fleet.Worker{Name: "w", Slots: 1, Projects: []string{"team/app"}}); err != nil {
		s.Fatal(err)
	}
}

// start begins to deliver; hints come out of the first channel, sweeps out of the second.
func (s *scene) start() (hints, sweeps chan struct{}) {
	s.Helper()
	hints, sweeps = make(chan struct{}, 100), make(chan struct{}, 100)
	d, err := delivery.Start(s.Context(), delivery.Options{
		Pool:     s.server.Pool(),
		Projects: map[string]func(){s.store.Schema(): func() { hints <- struct{}{} }},
		Sweep:    func(context.Context, string) error { sweeps <- struct{}{}; return nil },
		Fleet: func(context.Context) ([]string, error) {
			return []string{s.store.Schema(), "rye_stranger_000000000000"}, nil
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			s.Error(err)
		}
	})
	return hints, sweeps
}

// enqueue registers a thread and puts it in the queue.
func (s *scene) enqueue(directive string) thread.ID {
	s.Helper()
	rec, _, err := store.Register(s.Context(), s.store, store.NewThread{Kind: thread.KindDirective, Directive: directive, Now: time.Now(), Run: thread.NewRun()}, nil)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.store.Enqueue(s.Context(), rec.ThreadID, 0, time.Now()); err != nil {
		s.Fatal(err)
	}
	return rec.ThreadID
}

func (s *scene) jobs() (n int) {
	s.Helper()
	if err := s.server.Pool().QueryRow(s.Context(), `SELECT count(*) FROM rye.river_job WHERE kind = 'start'`).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

// TestHints: a thread that becomes startable leaves a hint, in its own transaction, when a
// worker is alive for its project and has taken the one before, and none otherwise; the worker
// hears of each, those of before it came, too. The leader has the project swept, and no schema
// that only a row names.
func TestHints(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.enqueue("early") // there are no tables of River, and no worker
	hints, sweeps := s.start()
	<-sweeps
	s.enqueue("unheard")
	if n := s.jobs(); n != 0 {
		t.Fatalf("%d hints for nobody", n)
	}
	s.join()
	for i := range 3 {
		s.enqueue("work")
		<-hints
		if n := s.jobs(); n != i+1 {
			t.Errorf("%d hints of %d threads", n, i+1)
		}
	}
	select {
	case <-sweeps:
		t.Error("swept twice in a period")
	default:
	}
}

// TestRetryHints: a thread that is to be tried again leaves a hint for when that is.
func TestRetryHints(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	hints, _ := s.start()
	s.join()
	fail := func(in time.Duration) {
		t.Helper()
		rec, _, err := store.Register(t.Context(), s.store, store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: time.Now(), Run: thread.NewRun()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		by := s.store.Runner(rec.ThreadID, rec.Run)
		if _, err := by.Apply(t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, time.Now())); err != nil {
			t.Fatal(err)
		}
		failed, err := store.Finished(rec.ThreadID, thread.Outcome{
			State: thread.Error, Error: &thread.Problem{Code: "provider_transient", Message: "down", Passing: true},
			Retry: &thread.Retry{At: time.Now().Add(in), Attempt: 2, Attempts: 3},
		}, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := by.Apply(t.Context(), failed); err != nil {
			t.Fatal(err)
		}
	}
	fail(0)
	<-hints
	fail(time.Hour)
	var in time.Duration
	err := s.server.Pool().QueryRow(t.Context(), `SELECT scheduled_at - clock_timestamp() FROM rye.river_job WHERE kind = 'start' AND state = 'scheduled'`).Scan(&in)
	if err != nil || in < 55*time.Minute || in > time.Hour {
		t.Errorf("the hint of one that is due in an hour comes in %s, %v", in, err)
	}
	if n := s.jobs(); n != 2 {
		t.Errorf("%d hints of two", n)
	}
}

// TestMirrors: after the sweep of a project each of its mirrors has a job, once, which a worker
// takes that serves the mirror, and nobody else does; a job that is due by a change comes at once.
func TestMirrors(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	mine, other := &mirrors.Outbox{Pool: s.store.Pool, Mirror: mirrors.ID("mine")}, &mirrors.Outbox{Pool: s.store.Pool, Mirror: mirrors.ID("other")}
	for _, o := range []*mirrors.Outbox{mine, other} {
		if err := o.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.enqueue("early") // there are no tables of River
	sent := make(chan string, 100)
	d, err := delivery.Start(t.Context(), delivery.Options{
		Pool: s.server.Pool(), Projects: map[string]func(){s.store.Schema(): func() {}},
		Sweep:   func(context.Context, string) error { return nil },
		Fleet:   func(context.Context) ([]string, error) { return []string{s.store.Schema()}, nil },
		Mirrors: func(ctx context.Context, _ string) ([]string, error) { return mirrors.Of(ctx, s.store.Pool()) },
		Mirror:  func(_ context.Context, schema string) error { sent <- schema; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(context.Background()) })
	if err := d.Serve(t.Context(), s.store.Schema(), mine.Mirror); err != nil {
		t.Fatal(err)
	}
	if schema := <-sent; schema != s.store.Schema() {
		t.Errorf("sent of %s", schema)
	}
	s.enqueue("now")
	<-sent
	waiting := func() (queues string) {
		t.Helper()
		err := s.server.Pool().QueryRow(t.Context(), `SELECT coalesce(string_agg(queue, ' '), '') FROM rye.river_job WHERE kind = 'mirror' AND state = 'available'`).Scan(&queues)
		if err != nil {
			t.Fatal(err)
		}
		return queues
	}
	if got, want := waiting(), delivery.MirrorQueue(s.store.Schema(), other.Mirror); got != want {
		t.Errorf("for others waits %q, want %q", got, want)
	}
	if err := d.Serve(t.Context(), s.store.Schema(), other.Mirror); err != nil {
		t.Fatal(err)
	}
	<-sent
	s.enqueue("for nobody here")
	select {
	case <-sent: // one of the two is that of the mirror which is served now
	case <-t.Context().Done():
	}
	if got, want := waiting(), delivery.MirrorQueue(s.store.Schema(), mine.Mirror); got != want {
		t.Errorf("after another was named %q waits, want %q", got, want)
	}
}

// TestHintIsOfTheTransaction: a thread that was not put in the queue leaves no hint.
func TestHintIsOfTheTransaction(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	s.join()
	tx, err := s.store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec, _, err := store.Register(t.Context(), s.store, store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: time.Now(), Run: thread.NewRun()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `UPDATE threads SET queue_position = 1, queued_at = 1 WHERE thread_id = $1`, rec.ThreadID); err != nil {
		t.Fatal(err)
	}
	var inside int
	if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM rye.river_job WHERE kind = 'start'`).Scan(&inside); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := s.jobs(); inside != 1 || after != 0 {
		t.Errorf("%d hints in the transaction, %d after it was taken back", inside, after)
	}
}

// TestOneHintWaits: threads leave one hint as long as it waits for a worker, and another when
// a worker is just taking it, who may look before the thread is there.
func TestOneHintWaits(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	d, err := delivery.Start(t.Context(), delivery.Options{Pool: s.server.Pool()}) // it makes the tables
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.join()
	for range 3 {
		s.enqueue("work")
	}
	if n := s.jobs(); n != 1 {
		t.Errorf("%d hints wait", n)
	}
	taking, err := s.server.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := taking.Exec(t.Context(), `SELECT FROM rye.river_job WHERE kind = 'start' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	s.enqueue("work")
	if err := taking.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.jobs(); n != 2 {
		t.Errorf("%d hints of a thread that comes while the only one is taken", n)
	}
}

// BenchmarkHint is how long it takes from the call that enqueues a thread until a worker has
// its hint, by River, and hears of the commit, by the store's own notice.
func BenchmarkHint(b *testing.B) {
	for _, by := range []string{"river", "changes"} {
		b.Run(by, func(b *testing.B) {
			server := pgstoretest.Connect(b)
			st := pgstoretest.Project(b, server, "team/app")
			if _, err := (&fleet.Fleet{Pool: server.Pool(), TTL: time.Hour}).Join(b.Context(), fleet.Worker{Name: "w", Slots: 1, Projects: []string{"team/app"}}); err != nil {
				b.Fatal(err)
			}
			heard := make(chan struct{}, 100)
			changes := st.Changes(b.Context())
			if by == "river" {
				d, err := delivery.Start(b.Context(), delivery.Options{
					Pool: server.Pool(), Sweep: func(context.Context, string) error { return nil }, Fleet: func(context.Context) ([]string, error) { return nil, nil },
					Projects: map[string]func(){st.Schema(): func() { heard <- struct{}{} }},
				})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = d.Stop(context.Background()) }()
			}
			for b.Loop() {
				b.StopTimer()
				rec, _, err := store.Register(b.Context(), st, store.NewThread{Kind: thread.KindDirective, Directive: "d", Now: time.Now(), Run: thread.NewRun()}, nil)
				if err != nil {
					b.Fatal(err)
				}
				for len(changes) > 0 {
					<-changes
				}
				b.StartTimer()
				if _, err := st.Enqueue(b.Context(), rec.ThreadID, 0, time.Now()); err != nil {
					b.Fatal(err)
				}
				if by == "river" {
					<-heard
				} else {
					<-changes
				}
			}
		})
	}
}
