package main_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// gate is a model that answers when it is told to, and says when a request of it came and
// when it was given up.
type gate struct {
	came, left chan time.Time
	answer     chan struct{}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	(&reader{}).ServeHTTP(answer, r) // reads the request, so that the end of its connection is noticed
	g.came <- time.Now()
	select {
	case <-g.answer:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(answer.Body.Bytes())
	case <-r.Context().Done():
		g.left <- time.Now()
	}
}

// farRounds is how often it is measured: the second slowest is the 99th percentile.
const farRounds = 100

// BenchmarkRatioFar measures what a client on one machine has of threads that a worker runs
// on another, with user spaces of their own and one PostgreSQL, out of idleness.
func BenchmarkRatioFar(b *testing.B) {
	model := &gate{came: make(chan time.Time, 1), left: make(chan time.Time, 1), answer: make(chan struct{})}
	far := newFar(b, model)
	b.Run("99 of 100 waits on another machine than the worker's/from the commit of the end to their return/FULL", func(b *testing.B) {
		reportFar(b, 100, func() time.Duration { return far.wake(b, model) })
	})
	b.Run("99 of 100 cancels from another machine than the worker's/from the call until the model is left/FULL", func(b *testing.B) {
		reportFar(b, 250, func() time.Duration { return far.cancel(b, model) })
	})
}

// farClient is a client of threads that a worker with another user space runs, and the database.
type farClient struct {
	*host
	database *pgx.Conn
	threads  string // the table
}

func newFar(b *testing.B, model http.Handler) *farClient {
	b.Helper()
	server := httptest.NewServer(model)
	b.Cleanup(server.Close)
	p := newTeam(b, greeting)
	url := pgtest.Start(b, pgtest.Options{Durable: true, Settings: map[string]string{"track_commit_timestamp": "on"}}).Database(b)
	p.env = append(p.env, storeurl.Variable+"="+url)
	p.clone("builder", "ANTHROPIC_API_KEY="+testKey, "ANTHROPIC_BASE_URL="+server.URL).work("builder")
	f := &farClient{host: p.serve()}
	var err error
	f.database, err = pgx.Connect(b.Context(), url)
	p.noError(err)
	b.Cleanup(func() { _ = f.database.Close(context.WithoutCancel(b.Context())) })
	var schema string
	p.noError(f.database.QueryRow(b.Context(), "SELECT schema_name FROM rye.projects").Scan(&schema))
	f.threads = pgx.Identifier{schema, "threads"}.Sanitize()
	return f
}

// reportFar reports the 99th percentile of what is measured, in milliseconds.
func reportFar(b *testing.B, goal float64, measure func() time.Duration) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		for range farRounds {
			took = append(took, measure())
		}
	}
	slices.Sort(took)
	b.Logf("median %s, slowest %s", took[len(took)/2], took[len(took)-1])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[len(took)*99/100-1].Seconds()*1000, "ms")
	b.ReportMetric(goal, "ms-goal")
}

// start starts a thread, and returns when its model is asked.
func (f *farClient) start(model *gate) thread.ID {
	f.p.Helper()
	id := must[view.Started](f.host, "rye_execute", args{"item_id": "greet", "async": true}).ThreadID
	<-model.came
	return id
}

// wake is how long after the commit of the end of a thread a wait returns.
func (f *farClient) wake(b *testing.B, model *gate) time.Duration {
	b.Helper()
	id := f.start(model)
	returned := make(chan time.Time, 1)
	go func() {
		_, _ = answered[view.WaitResult](f.host, "wait_threads", args{"thread_ids": []thread.ID{id}})
		returned <- time.Now()
	}()
	<-time.After(restFar)
	model.answer <- struct{}{}
	at := <-returned
	var committed time.Time
	var worker string
	err := f.database.QueryRow(b.Context(), "SELECT pg_xact_commit_timestamp(xmin), worker FROM "+f.threads+" WHERE thread_id = $1", string(id)).Scan(&committed, &worker)
	if err != nil || worker != "builder" || at.Before(committed) {
		b.Fatalf("committed by worker %q %s after the wait returned, %v", worker, committed.Sub(at), err)
	}
	return at.Sub(committed)
}

// restFar lets a wait begin, and all come to rest.
const restFar = 50 * time.Millisecond

// cancel is how long it takes from the call until a thread no longer asks its model.
func (f *farClient) cancel(b *testing.B, model *gate) time.Duration {
	b.Helper()
	id := f.start(model)
	<-time.After(restFar)
	called := time.Now()
	must[stop.Stopped](f.host, "cancel_thread", args{"thread_id": id})
	return (<-model.left).Sub(called)
}
