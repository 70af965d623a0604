package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/delivery"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// BenchmarkRatioDispatch measures what a thread costs a fleet, of which each is registered
// and enqueued by one of two starters, hinted, admitted by one of two workers with a run
// of its own, claimed and ended by that run; nothing runs. All have connections of their
// own to one server, and what they are told is on the disk. 10 000 a minute are 6 ms each.
func BenchmarkRatioDispatch(b *testing.B) {
	const threads = 2000
	b.Run("a thread enqueued, hinted, claimed and ended by a fleet, null runner/10 000 a minute/FULL", func(b *testing.B) {
		c := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"shared_buffers": "128MB", "autovacuum": "on"}})
		var each time.Duration
		for b.Loop() {
			f := &idleFleet{B: b, url: c.Database(b), over: make(chan struct{})}
			each = f.dispatch(threads) / threads
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(each.Seconds()*1000, "ms")
		b.ReportMetric(6, "ms-goal")
	})
}

// idleFleet is workers whose runners do nothing, and starters.
type idleFleet struct {
	*testing.B

	url   string
	ended atomic.Int64
	want  int64
	over  chan struct{} // closed when all have ended
}

// The processes of the fleet.
const (
	idleStarters, startsAtOnce = 2, 4
	idleWorkers, idleSlots     = 2, 8
)

// machine is a process of the fleet.
func (f *idleFleet) machine() (*postgres.Server, *postgres.Store) {
	f.Helper()
	server, err := postgres.Connect(f.Context(), postgres.Options{URL: f.url, Connections: idleSlots})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = server.Close() })
	return server, pgstoretest.Project(f, server, "team/app")
}

// dispatch returns how long it takes until so many threads have ended.
func (f *idleFleet) dispatch(threads int) time.Duration {
	f.Helper()
	f.want = int64(threads)
	for n := range idleWorkers {
		defer f.work(fmt.Sprintf("w%d", n))()
	}
	began := time.Now()
	var starters sync.WaitGroup
	for n := range idleStarters {
		_, st := f.machine()
		for at := range startsAtOnce {
			starters.Go(func() { f.start(st, fmt.Sprintf("d%d/%d", n, at), threads/idleStarters/startsAtOnce) })
		}
	}
	starters.Wait()
	<-f.over
	return time.Since(began)
}

func (f *idleFleet) start(st *postgres.Store, directive string, threads int) {
	for range threads {
		n := store.NewThread{Kind: thread.KindDirective, Directive: directive, Now: time.Now(), Run: thread.NewRun()}
		rec, _, err := store.Register(f.Context(), st, n, nil)
		if err == nil {
			_, err = st.Enqueue(f.Context(), rec.ThreadID, 0, time.Now())
		}
		if err != nil {
			f.Error(err)
			return
		}
	}
}

// work is a worker: hints wake it, one admission at a time, and a goroutine is a runner.
func (f *idleFleet) work(name string) (stop func()) {
	f.Helper()
	server, st := f.machine()
	joined := &fleet.Fleet{Pool: server.Pool(), TTL: time.Hour}
	if _, err := joined.Join(f.Context(), fleet.Worker{Name: name, Slots: idleSlots, Projects: []string{"team/app"}}); err != nil {
		f.Fatal(err)
	}
	wake := make(chan struct{}, 1)
	look := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	d, err := delivery.Start(f.Context(), delivery.Options{
		Pool: server.Pool(), Projects: map[string]func(){st.Schema(): look},
		Sweep: func(context.Context, string) error { return nil }, Fleet: func(context.Context) ([]string, error) { return nil, nil },
	})
	if err != nil {
		f.Fatal(err)
	}
	var working sync.WaitGroup
	working.Go(func() { f.admit(st, wake, look, &working) })
	return func() {
		working.Wait()
		_ = d.Stop(context.Background())
	}
}

// admit admits threads as long as there are some and slots are free, and again when woken.
func (f *idleFleet) admit(st *postgres.Store, wake <-chan struct{}, look func(), working *sync.WaitGroup) {
	slots := make(chan struct{}, idleSlots)
	for {
		select {
		case <-f.over:
			return
		case <-wake:
		}
		for {
			slots <- struct{}{}
			rec, admitted, err := store.Admit(f.Context(), st, idleWorkers*idleSlots, time.Now(), thread.NewRun(), func(thread.Record) error { return nil })
			if err != nil {
				f.Error(err)
			}
			if !admitted {
				<-slots
				break
			}
			working.Go(func() {
				f.run(st, rec)
				<-slots
				look()
			})
		}
	}
}

// run is a runner that does nothing.
func (f *idleFleet) run(st *postgres.Store, rec thread.Record) {
	by := st.Runner(rec.ThreadID, rec.Run)
	_, err := by.Apply(f.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, time.Now()))
	if err != nil {
		f.Error(err)
	}
	end, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Completed}, nil, time.Now())
	if err == nil {
		_, err = by.Apply(f.Context(), end)
	}
	if err != nil {
		f.Error(err)
	}
	if f.ended.Add(1) == f.want {
		close(f.over)
	}
}
