package postgres_test

import (
	"context"
	"errors"
	"fmt"
	neturl "net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func newThread(directive string, parent thread.ID) store.NewThread {
	return store.NewThread{Kind: thread.KindDirective, Directive: directive, ParentID: parent, MaxSpawns: 1 << 30, Now: testTime}
}

// family is a root thread that runs, with a budget, and what was started below it.
type family struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // lives as long as the test, like the T beside it
	store *postgres.Store
	root  thread.ID

	begun   atomic.Int64
	started atomic.Int64
	failed  atomic.Int64
	errs    sync.Map // texts of facts
}

const share = thread.Micros(1000)

// newFamily has its own project.
func newFamily(t *testing.T, s *postgres.Server, project string) *family {
	t.Helper()
	f := &family{t: t, ctx: faultContext(t), store: open(t, s, project)}
	rec, _, err := store.Register(t.Context(), f.store, newThread("root", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.root = rec.ThreadID
	if _, err := storetest.As(f.store).Apply(t.Context(), store.Claimed(f.root, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
		t.Fatal(err)
	}
	if err := f.store.OpenRoot(t.Context(), f.root, share*1_000_000, testTime); err != nil {
		t.Fatal(err)
	}
	return f
}

// child starts one more thread, and calls again until it is there with its money.
func (f *family) child() {
	n := newThread("child", f.root)
	n.RequestKey = fmt.Sprintf("key %d", f.begun.Add(1))
	var rec thread.Record
	f.untilDone(func() (err error) {
		rec, _, err = store.Register(f.ctx, f.store, n, nil)
		return err
	})
	f.untilDone(func() error { return f.store.Reserve(f.ctx, rec.ThreadID, f.root, share, testTime) })
	f.started.Add(1)
}

func (f *family) untilDone(call func() error) {
	for err := call(); err != nil; err = call() {
		if f.ctx.Err() != nil {
			f.t.Errorf("given up: %v", err)
			return
		}
		f.failed.Add(1)
		fault, ok := errors.AsType[*postgres.Error](err)
		if !ok {
			f.t.Errorf("not an error of the server: %v", err)
			return
		}
		f.errs.Store(fault.Fact.Error(), err)
	}
}

// work starts threads from several sides until stop is called.
func (f *family) work() (stop func()) {
	done := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f.child()
				}
			}
		})
	}
	return func() {
		close(done)
		workers.Wait()
	}
}

// more waits until some more were started.
func (f *family) more(n int64) {
	f.t.Helper()
	for until := f.started.Load() + n; f.started.Load() < until; {
		select {
		case <-f.ctx.Done():
			f.t.Fatal("nothing was started any more")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// exact holds what is stored against what was told: each thread is there once, the root has
// counted each, and holds the money of each.
func (f *family) exact() {
	f.t.Helper()
	ctx := f.t.Context()
	want := f.begun.Load()
	var rows, keys, budgets int64
	f.store.Pool().Reset() // the server may have ended what it has
	err := f.store.Pool().QueryRow(ctx, `SELECT count(*), count(DISTINCT request_key), (SELECT count(*) FROM budgets WHERE parent_id = $1)
		FROM threads WHERE parent_id = $1`, string(f.root)).Scan(&rows, &keys, &budgets)
	if err != nil {
		f.t.Fatal(err)
	}
	root, err := f.store.Get(ctx, f.root)
	if err != nil {
		f.t.Fatal(err)
	}
	budget, err := f.store.Budget(ctx, f.root)
	if err != nil {
		f.t.Fatal(err)
	}
	if rows != want || keys != want || budgets != want || int64(root.SpawnCount) != want || budget.Reserved != share*thread.Micros(want) {
		f.t.Errorf("%d were started: %d rows, %d keys, %d budgets, counted %d, reserved %s", want, rows, keys, budgets, root.SpawnCount, budget.Reserved)
	}
	f.t.Logf("%d started, %d calls failed", want, f.failed.Load())
	f.errs.Range(func(fact, example any) bool {
		f.t.Logf("%v, as in: %v", fact, example)
		return true
	})
}

func faultContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestFaults does to a server under load what happens to servers. Each call is repeated
// until it succeeds; in the end nothing is lost and nothing is there twice.
func TestFaults(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{})
	url := c.Database(t)
	for _, fault := range []struct {
		name    string
		patient bool
		do      func(f *family)
		want    error // that calls fail with; nil: none does
	}{
		{"restarted", false, func(f *family) { c.Restart(f.t) }, nil},
		{"killed", false, func(f *family) { c.Kill(f.t); c.Up(f.t) }, nil},
		{"read-only for a while", false, func(f *family) {
			c.ReadOnly(f.t, true)
			f.awaitFact(postgres.ErrReadOnly)
			c.ReadOnly(f.t, false)
		}, postgres.ErrReadOnly},
		{"read-only for a while, of which the patient see nothing", true, func(f *family) {
			refused := c.Refuses(f.t, "in a read-only transaction")
			c.ReadOnly(f.t, true)
			refused()
			c.ReadOnly(f.t, false)
		}, nil},
		{"connections ended", false, func(f *family) {
			for range 5 {
				c.Exec(f.t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rye-mcp%'")
				f.more(2)
			}
		}, nil},
		{"suspended past the deadline", false, func(f *family) {
			resume := c.Suspend(f.t)
			f.awaitFact(postgres.ErrTimeout)
			resume()
		}, postgres.ErrTimeout},
	} {
		t.Run(fault.name, func(t *testing.T) { //nolint:paralleltest // it is one server
			timeout := time.Duration(0)
			if errors.Is(fault.want, postgres.ErrTimeout) {
				timeout = 500 * time.Millisecond
			}
			s, err := postgres.Connect(t.Context(), postgres.Options{URL: url, Timeout: timeout, Patient: fault.patient})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // of a test
			f := newFamily(t, s, fault.name)
			stop := f.work()
			f.more(10)
			fault.do(f)
			f.more(10)
			stop()
			if fault.want == nil && f.failed.Load() > 0 && !f.onlyUnknown() {
				t.Errorf("%d calls failed", f.failed.Load())
			}
			f.exact()
		})
	}
}

// onlyUnknown reports whether all that calls failed with is that an outcome is not known.
func (f *family) onlyUnknown() bool {
	only := true
	f.errs.Range(func(fact, _ any) bool {
		only = only && fact == postgres.ErrUnknownOutcome.Error()
		return true
	})
	return only
}

// awaitFact waits until a call has failed with a fact.
func (f *family) awaitFact(fact error) {
	f.t.Helper()
	for {
		if _, seen := f.errs.Load(fact.Error()); seen {
			return
		}
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("no call has failed with %v", fact)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestLostCommit: the link is cut at COMMIT. Whether it was done is found out, and the
// call answers as if nothing had happened.
func TestLostCommit(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{})
	direct := c.Database(t)
	p := newProxy(t, c)
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: direct + "&host=" + p.folder})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // of a test
	f := newFamily(t, s, "cut")
	for _, how := range []cut{beforeCommit, afterCommit, afterAnswered} {
		for range 4 {
			p.next.Store(int32(how))
			f.child()
		}
		// A statement of its own, which takes no lock of a writer.
		p.next.Store(int32(how))
		cost := thread.Cost{Turns: int(how)}
		if err := storetest.As(f.store).RecordCost(f.ctx, f.root, cost, 0); err != nil {
			t.Error(err)
		}
	}
	if f.failed.Load() > 0 {
		t.Errorf("%d calls failed", f.failed.Load())
	}
	if p.cuts.Load() < 15 {
		t.Errorf("only %d of %d commits were cut", p.cuts.Load(), p.commits.Load())
	}
	f.exact()
}

// newCrashing is a family on a server that crashes at each COMMIT that its proxy cuts, so that
// a transaction number may be another's.
func newCrashing(t *testing.T) (*family, *proxy) {
	t.Helper()
	c := pgtest.Start(t, pgtest.Options{})
	direct := c.Database(t)
	p := newProxy(t, c)
	var one sync.Mutex
	p.onCut = func() {
		one.Lock() // two commits can be cut at the same time
		defer one.Unlock()
		c.Kill(t)
		c.Up(t)
	}
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: direct + "&host=" + p.folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return newFamily(t, s, "crash"), p
}

// TestUnknownOutcomeOfRun: what a run writes of itself is done again where nobody knows whether
// it was done, and comes to the same.
func TestUnknownOutcomeOfRun(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f, p := newCrashing(t)
	rec, _, err := store.Register(f.ctx, f.store, newThread("own", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	id, by := rec.ThreadID, f.store.Runner(rec.ThreadID, rec.Run)
	process, cost := thread.Process{PID: 1, Host: "h"}, thread.Cost{Turns: 3, Spend: 70}
	end, err := store.Finished(id, thread.Outcome{State: thread.Completed}, &cost, testTime)
	if err != nil {
		t.Fatal(err)
	}
	for step, do := range []func() error{
		func() error { return f.store.OpenRoot(f.ctx, id, 1000, testTime) },
		func() error { _, err := f.store.Enqueue(f.ctx, id, 100, testTime); return err },
		func() error { return by.SetProcess(f.ctx, process) },
		func() error { _, err := by.Apply(f.ctx, store.Claimed(id, process, testTime)); return err },
		func() error { return by.Pledge(f.ctx, 100, testTime) },
		func() error { return by.Report(f.ctx, 70, testTime) },
		func() error { return by.RecordCost(f.ctx, cost, 0) },
		func() error { return by.Yield(f.ctx, true) },
		func() error { return by.Settle(f.ctx, testTime) },
	} {
		p.next.Store(int32(afterAnswered))
		if err := do(); err != nil {
			t.Errorf("step %d: %v", step, err)
		}
	}
	// Costs are not waited to disk: those that the killed server had answered for may be gone.
	if err := by.RecordCost(f.ctx, cost, 0); err != nil {
		t.Errorf("again: %v", err)
	}
	now, err := f.store.Get(f.ctx, id)
	if err != nil || now.Status != thread.Running || !now.Yielded || now.Cost != cost {
		t.Errorf("it is %+v, %v", now, err)
	}
	budget, err := f.store.Budget(f.ctx, id)
	if err != nil || budget.Actual != 70 || budget.Own != 70 || budget.Active {
		t.Errorf("its budget is %+v, %v", budget, err)
	}
	if _, err := by.Apply(f.ctx, store.Claimed(id, thread.Process{PID: 2, Host: "h"}, testTime)); !errors.Is(err, thread.ErrSettled) {
		t.Errorf("another process claims it: %v", err)
	}
	p.next.Store(int32(afterAnswered))
	if _, err := by.Apply(f.ctx, end); err != nil && !errors.Is(err, thread.ErrSettled) { // callers that end threads read the row then
		t.Error(err)
	}
	if now, err := f.store.Get(f.ctx, id); err != nil || now.Status != thread.Completed {
		t.Errorf("it is %+v, %v", now, err)
	}
	if p.cuts.Load() < 10 {
		t.Errorf("only %d commits were cut", p.cuts.Load())
	}
}

// TestUnknownOutcome: the server crashes at COMMIT. Where the call may not be done twice it says
// that the outcome is not known; repeated it does no harm.
func TestUnknownOutcome(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f, p := newCrashing(t)
	for _, how := range []cut{afterCommit, afterAnswered} {
		p.next.Store(int32(how))
		f.child()
	}
	if _, seen := f.errs.Load(postgres.ErrUnknownOutcome.Error()); !seen {
		t.Error("no outcome was unknown")
	}
	f.exact()
}

// TestNoConnectionLeft: the server has none left. Calls wait for one, and say so when
// none becomes free.
func TestNoConnectionLeft(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "8"}})
	c.Exec(t, "CREATE ROLE worker LOGIN", "CREATE DATABASE work OWNER worker")
	url := c.URL("worker", "work")
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: url, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // of a test
	f := newFamily(t, s, "full")
	f.store.Pool().Reset() // of which others take the place
	var others []func(context.Context) error
	fill := func() {
		for conn, err := connectPlain(t, url); err == nil; conn, err = connectPlain(t, url) {
			others = append(others, conn.Close)
		}
	}
	fill()
	// Those that ended make room for others once the server has seen it.
	untilBusy := func(what string, call func() error) {
		for err := call(); !errors.Is(err, postgres.ErrBusy); err = call() {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			fill()
		}
	}
	untilBusy("connect", func() error {
		s, err := postgres.Connect(t.Context(), postgres.Options{URL: url})
		if err == nil {
			err = s.Close()
		}
		return err
	})
	untilBusy("get", func() error {
		_, err := f.store.Get(t.Context(), f.root)
		if err == nil {
			f.store.Pool().Reset()
		}
		return err
	})
	answered := make(chan error, 1)
	go func() {
		_, err := f.store.Get(t.Context(), f.root)
		answered <- err
	}()
	for _, end := range others {
		if err := end(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := <-answered; err != nil {
		t.Errorf("with a free connection: %v", err)
	}
}

// TestSuspendedWriter: a process that was suspended in a transaction keeps its lock no
// longer than a call may take.
func TestSuspendedWriter(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: pgtest.Server(t), Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // of a test
	f := newFamily(t, s, "p")
	tx, err := f.store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // the server has ended it
	if _, err := tx.Exec(t.Context(), "SELECT FROM locks WHERE name = 'registry' FOR NO KEY UPDATE"); err != nil {
		t.Fatal(err)
	}
	f.child()
	f.exact()
}

// TestStandbyPromoted: the primary dies, and a standby that lacks the last commits takes
// its place. Calls go on with it; a row that it lacks is there again when its call is repeated,
// and the money of what it lacks is not held.
func TestStandbyPromoted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	url := primary.Database(t)
	standby := primary.Standby(t)
	both := url + neturl.QueryEscape(","+standby.Socket()) + "&target_session_attrs=read-write"
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: both, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // of a test
	f := newFamily(t, s, "p")
	f.child()
	primary.CaughtUp(t, standby)
	before := f.begun.Load()
	standby.Detach(t) // it is stale from here on
	f.child()
	primary.Kill(t)
	standby.Promote(t)
	f.begun.Store(before)
	f.exact()
	f.begun.Store(0) // all calls are repeated
	f.child()
	f.child()
	f.child()
	f.exact()
}

// TestDiskFull: the server has no room. The call says so, nothing of it is left, and with
// room it succeeds.
func TestDiskFull(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	url := pgtest.Server(t)
	s := connect(t, url)
	f := newFamily(t, s, "p")
	exec := func(statement string) {
		t.Helper()
		if _, err := f.store.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	// PostgreSQL says this when a file cannot be extended; here it does in the last step of a
	// transaction.
	exec("CREATE SEQUENCE refusals") // counts what is taken back, too
	exec(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	exec(`CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON threads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	_, _, err := store.Register(t.Context(), f.store, newThread("child", f.root), nil)
	fault, ok := errors.AsType[*postgres.Error](err)
	if !errors.Is(err, postgres.ErrFull) || !ok || fault.Try() == "" {
		t.Errorf("%v", err)
	}
	f.exact()

	patient, err := postgres.Connect(t.Context(), postgres.Options{URL: url, Patient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = patient.Close() })
	waiting := open(t, patient, "p")
	registered := make(chan error, 1)
	go func() {
		_, _, err := store.Register(t.Context(), waiting, newThread("root", ""), nil)
		registered <- err
	}()
	for refused := 0; refused < 3; {
		if len(registered) > 0 {
			t.Fatalf("a patient call has ended: %v", <-registered)
		}
		if err := f.store.Pool().QueryRow(t.Context(), "SELECT last_value FROM refusals").Scan(&refused); err != nil {
			t.Fatal(err)
		}
	}
	exec("DROP TRIGGER full_disk ON threads")
	if err := <-registered; err != nil {
		t.Errorf("a patient call does not wait for room: %v", err)
	}
	f.child()
	f.exact()
}
