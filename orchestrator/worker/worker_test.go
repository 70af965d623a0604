package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A lease that does not run out by itself while a test runs, and is renewed all the time.
const (
	hour = time.Hour
	beat = 2 * time.Millisecond
)

// link is what a worker has of its server: a pool whose connections can be cut, and that
// tells what goes through.
type link struct {
	*pgxpool.Pool

	down    atomic.Bool
	refused chan struct{} // a connection while the link is down
	renewed chan struct{} // a renewal that was answered
	joins   chan struct{} // a try to join that was answered
}

var errDown = errors.New("the link is down")

func newLink(t *testing.T, server *postgres.Server) *link {
	t.Helper()
	l := &link{refused: make(chan struct{}), renewed: make(chan struct{}), joins: make(chan struct{})}
	config := server.Pool().Config()
	config.MaxConns = 4
	config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		if !l.down.Load() {
			return nil
		}
		tell(l.refused)
		return errDown
	}
	config.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return !l.down.Load(), nil }
	config.ConnConfig.Tracer = l
	var err error
	if l.Pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

type tracedKey struct{}

// tell is heard by whoever waits now.
func tell(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// TraceQueryStart implements [pgx.QueryTracer].
func (l *link) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, tracedKey{}, data.SQL)
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (l *link) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	asked, _ := ctx.Value(tracedKey{}).(string)
	switch {
	case data.Err != nil:
	case strings.HasPrefix(asked, "UPDATE rye.workers SET lease_until"):
		tell(l.renewed)
	case strings.HasPrefix(asked, "INSERT INTO rye.workers"):
		tell(l.joins)
	}
}

// event is something that a worker has done.
type event struct {
	what  string // killed, undelivered, joined, ended
	of    thread.Incarnation
	lease *fleet.Lease
	err   error
}

// stay is one worker of a fleet whose time and link a test decides, and the model of it.
type stay struct {
	*rapid.T

	server *pgxpool.Pool
	link   *link
	worker *worker.Worker
	passed atomic.Int64 // time
	drain  chan struct{}
	stop   context.CancelFunc
	events chan event

	lease   *fleet.Lease // the last that it got
	holding bool
	silent  time.Duration // since the link was cut
}

func newStay(t *rapid.T, server *pgxpool.Pool, l *link) *stay {
	s := &stay{T: t, server: server, link: l, drain: make(chan struct{}), events: make(chan event, 100)}
	s.sql(`DELETE FROM rye.workers`)
	start := time.Now()
	f := &fleet.Fleet{Pool: l.Pool, TTL: hour, Beat: beat, Clock: func() time.Time { return start.Add(time.Duration(s.passed.Load())) }}
	s.worker = &worker.Worker{
		Log: zerolog.Nop(), Self: fleet.Worker{Name: "w", Slots: 1, Projects: []string{"p"}}, Fleet: f,
		Joined: func(lease *fleet.Lease) { s.events <- event{what: "joined", lease: lease} },
		Kill: func(_ context.Context, of thread.Incarnation) error {
			s.events <- event{what: "killed", of: of}
			return nil
		},
		Deliver: func(context.Context, *worker.Worker) (func(context.Context) error, error) {
			return func(context.Context) error { s.events <- event{what: "undelivered"}; return nil }, nil
		},
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		err := s.worker.Run(ctx, worker.Ends{Drain: s.drain})
		s.events <- event{what: "ended", err: err}
	}()
	s.wantJoined()
	return s
}

func (s *stay) sql(statement string, args ...any) {
	s.Helper()
	if _, err := s.server.Exec(context.Background(), statement, args...); err != nil {
		s.Fatal(err)
	}
}

// patience is how long something may take on a busy machine that takes milliseconds.
const patience = time.Minute

func (s *stay) want(what string) event {
	s.Helper()
	select {
	case e := <-s.events:
		if e.what != what {
			s.Fatalf("the worker has %s (%v), want %s", e.what, e.err, what)
		}
		return e
	case <-time.After(patience):
		s.Fatalf("the worker has not %s", what)
		return event{}
	}
}

// wantKilled sees what ran by the lease killed: before anything that can wait for the server,
// and again when nothing starts any more.
func (s *stay) wantKilled() {
	s.Helper()
	for _, what := range []string{"killed", "undelivered", "killed"} {
		if e := s.want(what); what == "killed" && e.of != s.lease.Incarnation {
			s.Fatalf("killed what runs by %s, want %s", e.of, s.lease.Incarnation)
		}
	}
	s.holding = false
}

// wantJoined sees the worker join, as another one than before, of whose lease nothing is left.
func (s *stay) wantJoined() {
	s.Helper()
	before := s.lease
	s.lease, s.holding, s.silent = s.want("joined").lease, true, 0
	if before == nil {
		return
	}
	alive, err := s.worker.Fleet.Alive(context.Background(), before.Incarnation, "")
	if alive || err != nil || before.Incarnation == s.lease.Incarnation {
		s.Fatalf("after it has joined anew the lease before is alive: %t, %v", alive, err)
	}
}

func (s *stay) wantEnded(want error) {
	s.Helper()
	if want == nil && s.link.down.Load() {
		want = errDown // others see its lease run out
	}
	if e := s.want("ended"); !errors.Is(e.err, want) {
		s.Fatalf("it ends with %v, want %v", e.err, want)
	}
	s.holding = false
}

// hears waits until something was asked, or refused, twice since now: the second was begun
// since.
func (s *stay) hears(c <-chan struct{}) {
	s.Helper()
	for range 2 {
		select {
		case <-c:
		case <-time.After(patience):
			s.Fatal("the worker does not ask its server")
		}
	}
}

func (s *stay) cut() {
	if !s.link.down.Swap(true) {
		s.hears(s.link.refused)
	}
}

// pass lets time pass: while the link is up less than would be noticed.
func (s *stay) pass(d time.Duration) {
	if !s.link.down.Load() {
		d %= hour / 4
	}
	s.passed.Add(int64(d))
	s.sql(`UPDATE rye.workers SET lease_until = lease_until - $1::bigint * interval '1 millisecond'`, d.Milliseconds())
	if !s.link.down.Load() {
		s.hears(s.link.renewed)
		return
	}
	s.silent += d
	if s.holding && s.silent >= hour*2/3 {
		s.wantKilled()
	}
	s.hears(s.link.refused) // a lease that was asked for before would be this much shorter
}

// heal mends the link. Somebody else has taken the name meanwhile, where that was free.
func (s *stay) heal(taken bool) {
	if !s.link.down.Load() {
		return
	}
	var other *fleet.Lease
	if taken && !s.holding && s.silent >= hour {
		var err error
		f := &fleet.Fleet{Pool: s.server, TTL: hour}
		if other, err = f.Join(context.Background(), fleet.Worker{Name: "w", Slots: 1}); err != nil {
			s.Fatal(err)
		}
	}
	s.link.down.Store(false)
	if s.holding {
		s.hears(s.link.renewed)
		s.silent = 0
		return
	}
	if other != nil {
		s.hears(s.link.joins)
		if len(s.events) > 0 {
			s.Fatalf("it takes the name of another: %+v", <-s.events)
		}
		if err := other.Leave(context.Background()); err != nil {
			s.Fatal(err)
		}
	}
	s.wantJoined()
}

// leave drains the worker, which runs nothing.
func (s *stay) leave() {
	close(s.drain)
	if !s.holding {
		s.wantEnded(fleet.ErrLost)
		return
	}
	s.want("undelivered")
	s.wantEnded(nil)
}

// end ends the worker with all that it runs.
func (s *stay) end() {
	s.stop()
	if !s.holding {
		s.wantEnded(context.Canceled)
		return
	}
	s.wantKilled()
	s.wantEnded(nil)
}

// check holds the worker against the model.
func (s *stay) check() {
	s.Helper()
	if len(s.events) > 0 {
		s.Fatalf("the worker has done what nothing asks for: %+v", <-s.events)
	}
	done, room := s.worker.Room(context.Background())
	if room {
		done()
	}
	if room != s.holding {
		s.Fatalf("room for a thread: %t; it holds its lease: %t", room, s.holding)
	}
	f := &fleet.Fleet{Pool: s.server}
	served, err := f.Serves(context.Background(), "p")
	if err != nil || s.holding && !served {
		s.Fatalf("others see it at work: %t, %v; it holds its lease: %t", served, err, s.holding)
	}
}

// TestWorker holds a worker against a model: its link is cut and mended, time passes, others
// take its name, it drains and is ended. It has room for threads only while it holds a lease;
// it kills at two thirds of that without a renewal, not before; a worker that takes itself
// for alive is alive for all others; and it joins anew when it can.
func TestWorker(t *testing.T) {
	t.Parallel()
	server := pgstoretest.Connect(t)
	l := newLink(t, server)
	rapid.Check(t, func(t *rapid.T) {
		l.down.Store(false)
		s := newStay(t, server.Pool(), l)
		defer s.stop()
		for _, do := range rapid.SliceOfN(rapid.SampledFrom([]string{"cut", "heal", "taken", "pass"}), 6, 14).Draw(t, "steps") {
			switch do {
			case "cut":
				s.cut()
			case "heal", "taken":
				s.heal(do == "taken")
			case "pass":
				s.pass(time.Duration(rapid.SampledFrom([]int{10, 25, 45}).Draw(t, "minutes")) * time.Minute)
			}
			s.check()
		}
		if rapid.Bool().Draw(t, "drains") {
			s.leave()
		} else {
			s.end()
		}
		s.check()
	})
}
