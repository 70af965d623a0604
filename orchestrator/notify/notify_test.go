package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// office is a store with a sender whose messages are kept.
type office struct {
	*testing.T
	db     store.Store
	sender *Sender
	sent   []Message
	fail   error
	log    bytes.Buffer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	o := &office{T: t, db: db}
	o.sender = &Sender{
		Store: db, Since: began.Add(-time.Hour), Project: "project", Now: func() time.Time { return began.Add(time.Minute) },
		Settings: config.Notify{Events: []string{"ended", "asked", "budget_80"}, Desktop: true},
		Channels: []Channel{o}, Lease: func() (life.Hold, error) { return free{}, nil },
	}
	o.sender.Log = zerolog.New(&o.log)
	return o
}

type free struct{}

func (free) Release() error { return nil }
func (free) End() error     { return nil }

func (*office) Name() string { return "test" }

func (o *office) Send(_ context.Context, m Message) error {
	o.sent = append(o.sent, m)
	return o.fail
}

// thread registers a running thread, below a parent if that is not empty.
func (o *office) thread(directive string, parent thread.ID, at time.Time) thread.ID {
	o.Helper()
	rec, _, err := store.Register(o.Context(), o.db, store.NewThread{
		Kind: thread.KindDirective, Directive: directive, Now: at, ParentID: parent, MaxSpawns: 1000,
	}, func(thread.ID) error { return nil })
	if err == nil {
		_, err = storetest.As(o.db).Apply(o.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, at))
	}
	if err != nil {
		o.Fatal(err)
	}
	return rec.ThreadID
}

func (o *office) end(id thread.ID, at time.Time) {
	o.Helper()
	change, err := store.Finished(id, thread.Outcome{State: thread.Completed, Result: "a secret word"}, &thread.Cost{Spend: 1500}, at)
	if err == nil {
		_, err = storetest.As(o.db).Apply(o.Context(), change)
	}
	if err != nil {
		o.Fatal(err)
	}
}

func (o *office) run(want ...string) {
	o.Helper()
	o.sent = nil
	if err := o.sender.Run(o.Context()); err != nil {
		o.Fatal(err)
	}
	got := []string{}
	for _, m := range o.sent {
		got = append(got, fmt.Sprintf("%s %s %d", m.Event, m.ThreadID, m.Count))
	}
	if !slices.Equal(got, want) && len(got)+len(want) > 0 {
		o.Errorf("sent %q, want %q", got, want)
	}
}

func TestSendsOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	root := o.thread("work", "", began)
	child := o.thread("child", root, began)
	o.end(child, began)
	o.end(root, began)
	o.run(fmt.Sprintf("ended %s 1", root))
	m := o.sent[0]
	if m.Status != thread.Completed || m.Directive != "work" || m.Spend != 1500 || m.Project != "project" || !m.At.Equal(began) {
		t.Errorf("%+v", m)
	}
	o.run()
	o.sender.Settings.Children = true
	o.run(fmt.Sprintf("ended %s 1", child))
	o.run()
}

// looked is a store that counts the rows which are read one by one.
type looked struct {
	store.Store
	rows int
}

func (l *looked) Get(ctx context.Context, id thread.ID) (thread.Record, error) {
	l.rows++
	return l.Store.Get(ctx, id)
}

// What nobody wants to be told is not read again by each sender.
func TestUnwantedIsNotRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	root := o.thread("work", "", began)
	for range 3 {
		o.end(o.thread("child", root, began), began)
	}
	if _, err := o.db.NoteBudget(t.Context(), root, began); err != nil {
		t.Fatal(err)
	}
	o.end(root, began)
	o.sender.Settings.Events = []string{"ended"}
	all := &looked{Store: o.db}
	o.sender.Store = all
	o.run(fmt.Sprintf("ended %s 1", root))
	if all.rows != 1 {
		t.Errorf("the rows of %d notices were read, of which 1 is wanted", all.rows)
	}
	o.run()
	if all.rows != 1 {
		t.Errorf("another sender read %d rows, where nothing is wanted", all.rows-1)
	}
}

// A way that fails does not keep the notice due: it is told in the log.
func TestFailureIsLogged(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.fail = errors.New("nobody at home")
	id := o.thread("work", "", began)
	o.end(id, began)
	o.run(fmt.Sprintf("ended %s 1", id))
	o.run()
	if !strings.Contains(o.log.String(), "nobody at home") || strings.Contains(o.log.String(), "secret word") {
		t.Errorf("log: %s", &o.log)
	}
}

// A notice that a dead sender was about to send, or that is late, is not sent, and not passed
// over without a word either.
func TestDeadSenderAndLateNotice(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	claimed, late := o.thread("claimed", "", began), o.thread("late", "", began.Add(-time.Minute*59))
	o.end(claimed, began)
	o.end(late, began.Add(-time.Minute*59-time.Second))
	due, err := o.db.DueNotices(t.Context(), store.NoticeQuery{Since: o.sender.Since, Kinds: []thread.NewsKind{thread.Ended}, Most: 10})
	if err != nil || len(due) != 2 {
		t.Fatalf("%+v, %v", due, err)
	}
	if err := o.db.ClaimNotice(t.Context(), due[0].Seq); err != nil {
		t.Fatal(err)
	}
	o.run()
	for _, want := range []string{string(claimed) + `","message":"notification: its sender ended`, string(late) + `","message":"notification: it is due for more than an hour`} {
		if strings.Count(o.log.String(), want) != 1 {
			t.Errorf("log lacks %q: %s", want, &o.log)
		}
	}
	o.run()
	if n := strings.Count(o.log.String(), "\n"); n != 2 {
		t.Errorf("%d lines in the log: %s", n, &o.log)
	}
}

// Ends from before anybody wanted to be told are no news.
func TestSinceTheSettings(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.end(o.thread("work", "", began), began)
	o.sender.Since = began.Add(time.Second)
	o.run()
	o.sender.Since, o.sender.Settings.Events = began, []string{"asked"}
	o.run()
	if o.log.Len() > 0 {
		t.Errorf("log: %s", &o.log)
	}
}

// One process sends at a time; it looks again when it has let go.
func TestOneSender(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	id := o.thread("work", "", began)
	o.end(id, began)
	o.sender.Lease = func() (life.Hold, error) { return nil, fmt.Errorf("it is %w", life.ErrHeld) }
	o.run()
	leases := 0
	second := o.thread("late-comer", "", began)
	come := sync.OnceFunc(func() { o.end(second, began) })
	o.sender.Lease = func() (life.Hold, error) { leases++; return comes{come}, nil }
	o.run(fmt.Sprintf("ended %s 1", id), fmt.Sprintf("ended %s 1", second))
	if leases != 2 {
		t.Errorf("%d leases", leases)
	}
}

// comes is a lease with whose first release something comes to pass.
type comes struct{ once func() }

func (c comes) Release() error {
	c.once()
	return nil
}

func (c comes) End() error { return nil }

// TestAsManyAsAreToldOneByOne: up to the bound each notice is a message, and of one more a message counts.
func TestAsManyAsAreToldOneByOne(t *testing.T) {
	t.Parallel()
	for _, n := range []int{flood, flood + 1} {
		o := newOffice(t)
		var each []string
		for i := range n {
			id := o.thread(fmt.Sprintf("work%d", i), "", began)
			o.end(id, began)
			each = append(each, fmt.Sprintf("ended %s 1", id))
		}
		if n > flood {
			each = []string{fmt.Sprint("several  ", n)}
		}
		o.run(each...)
	}
}

// TestSeveralOfOneThread: a message for many notices counts threads, and the money of each once.
func TestSeveralOfOneThread(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	of := func(id thread.ID, event string) notice {
		return notice{store.Notice{News: thread.News{ThreadID: id}}, Message{Event: event, ThreadID: id, Spend: 7}}
	}
	m := o.sender.several([]notice{of("a-1", "asked"), of("a-1", "asked"), of("b-1", "ended"), of("a-1", "ended")})
	if m.Count != 2 || m.Spend != 14 || !slices.Equal(m.ThreadIDs, []thread.ID{"a-1", "b-1"}) {
		t.Errorf("%+v", m)
	}
	if got := sentence(m); got != "project: news of 2 threads" {
		t.Errorf("says %q", got)
	}
}

// TestAttackFloodOfNotices: a directive starts hundreds of threads that end at once. The person gets one message that counts them, not one for each.
func TestAttackFloodOfNotices(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	var first thread.ID
	for i := range 120 {
		id := o.thread(fmt.Sprintf("work%d", i), "", began)
		o.end(id, began)
		if i == 0 {
			first = id
		}
	}
	o.run("several  120")
	if m := o.sent[0]; len(m.ThreadIDs) != mostNamed || m.ThreadIDs[0] != first || m.Spend != 120*1500 {
		t.Errorf("%+v", m)
	}
	o.run()
}
