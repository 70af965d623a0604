package mirrors_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/mirrors"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// house is a project on a server.
type house struct {
	*testing.T

	store *postgres.Store
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return &house{t, pgstoretest.Project(t, pgstoretest.Connect(t), "team/app")}
}

// outbox is what a machine of a name has, of the mirror of an address.
func (h *house) outbox(machine, address string) *mirrors.Outbox {
	return &mirrors.Outbox{Pool: func() *pgxpool.Pool { return h.store.Pool() }, Mirror: mirrors.ID(address), Sender: machine}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// due are the threads that are due, which counts as sending them.
func (h *house) due(o *mirrors.Outbox) string {
	h.Helper()
	ids, err := o.List(h.Context())
	h.must(err)
	for _, id := range ids {
		h.must(o.Take(h.Context(), id))
		_, err := o.Sent(h.Context(), id)
		h.must(err)
	}
	return fmt.Sprint(ids)
}

func (h *house) exec(query string, args ...any) {
	h.Helper()
	_, err := h.store.Pool().Exec(h.Context(), query, args...)
	h.must(err)
}

// begin takes the turn, and fails where the answer is another.
func (h *house) begin(o *mirrors.Outbox, want bool) {
	h.Helper()
	if mine, err := o.Begin(h.Context()); err != nil || mine != want {
		h.Errorf("the turn of %s: %v, %v; want %v", o.Sender, mine, err, want)
	}
}

// register makes a thread and takes it as far as its claim.
func (h *house) register(kind thread.Kind, directive string) thread.ID {
	h.Helper()
	rec, _, err := store.Register(h.Context(), h.store, store.NewThread{Kind: kind, Directive: directive, Now: noon, Run: thread.NewRun()}, nil)
	h.must(err)
	return rec.ThreadID
}

func (h *house) apply(id thread.ID, c store.Change) {
	h.Helper()
	rec, err := h.store.Get(h.Context(), id)
	h.must(err)
	_, err = h.store.Runner(id, rec.Run).Apply(h.Context(), c)
	h.must(err)
}

// TestNotes: each change that a copy would show is due for every mirror that somebody has,
// whoever makes it, and nothing else is.
func TestNotes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := h.outbox("a", "one"), h.outbox("b", "two")
	h.must(a.Join(t.Context()))
	h.begin(a, true)
	want := func(what, want string) {
		t.Helper()
		if got := h.due(a); got != want {
			t.Errorf("%s: %s is due, want %s", what, got, want)
		}
	}
	id := h.register(thread.KindDirective, "d")
	one := fmt.Sprintf("[%s]", id)
	want("a start", one)
	tool := h.register(thread.KindTool, "t")
	want("the run of a tool", "[]")
	_, err := h.store.Enqueue(t.Context(), id, 0, noon)
	h.must(err)
	want("a place in the queue", "[]")
	h.apply(id, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, noon))
	want("a claim", one)
	_, err = h.store.Label(t.Context(), id, store.LabelChange{Name: "named"}, noon)
	h.must(err)
	want("a name", one)
	h.exec(`INSERT INTO record_files (thread_id, name, changed_at) VALUES ($1, 'transcript.jsonl', 1), ($1, 'thread.log', 1)`, string(id))
	h.exec(`UPDATE record_files SET size = 9 WHERE name = 'thread.log'`)
	want("a log", "[]")
	h.exec(`UPDATE record_files SET size = 9 WHERE name = 'transcript.jsonl'`)
	want("a turn", one)
	h.must(b.Join(t.Context()))
	ended, err := store.Finished(id, thread.Outcome{State: thread.Completed}, nil, noon)
	h.must(err)
	h.apply(id, ended)
	_, err = h.store.Delete(t.Context(), [][]thread.ID{{id}}, noon)
	h.must(err)
	want("an end and a deletion", one)
	h.begin(b, true)
	if got := h.due(b); got != one {
		t.Errorf("for the other mirror %s is due", got)
	}
	if ids, err := mirrors.Of(t.Context(), h.store.Pool()); err != nil || len(ids) != 2 || !slices.Contains(ids, a.Mirror) {
		t.Errorf("mirrors %v, %v (%s)", ids, err, tool)
	}
}

// TestOfTheTransaction: a note that is taken back is not due.
func TestOfTheTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := h.outbox("a", "one")
	h.must(o.Join(t.Context()))
	h.begin(o, true)
	id := h.register(thread.KindDirective, "d")
	h.due(o)
	tx, err := h.store.Pool().Begin(t.Context())
	h.must(err)
	_, err = tx.Exec(t.Context(), `UPDATE threads SET name = 'x' WHERE thread_id = $1`, string(id))
	h.must(err)
	h.must(tx.Rollback(t.Context()))
	if due, err := o.IsDue(t.Context()); err != nil || due {
		t.Errorf("it is due: %v", err)
	}
}

// TestChangedMeanwhile: a thread that changes while it is sent stays due.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := h.outbox("a", "one")
	h.must(o.Join(t.Context()))
	h.begin(o, true)
	id := h.register(thread.KindDirective, "d")
	h.must(o.Take(t.Context(), id))
	_, err := h.store.Label(t.Context(), id, store.LabelChange{Name: "named"}, noon)
	h.must(err)
	if mine, err := o.Sent(t.Context(), id); err != nil || !mine {
		t.Errorf("%v, %v", mine, err)
	}
	if got := h.due(o); got != fmt.Sprintf("[%s]", id) {
		t.Errorf("%s is due", got)
	}
}

// TestTurns: one machine sends at a time, and another as soon as that one has ended or has
// given no sign for a while. A machine that loses the turn while it sends leaves the thread
// due.
func TestTurns(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b := h.outbox("a", "one"), h.outbox("b", "one")
	h.must(a.Join(t.Context()))
	h.begin(a, true)
	h.begin(a, true) // its next process
	h.begin(b, false)
	h.must(a.End(t.Context()))
	h.begin(b, true)
	h.begin(a, false)
	h.must(a.End(t.Context())) // which is not its own
	h.begin(a, false)
	id := h.register(thread.KindDirective, "d")
	h.must(b.Take(t.Context(), id))
	h.exec(`UPDATE mirrors SET sends_until = clock_timestamp() - interval '1 second'`) // it sleeps
	h.begin(a, true)
	if got := h.due(a); got != fmt.Sprintf("[%s]", id) {
		t.Errorf("%s is due", got)
	}
	if mine, err := b.Sent(t.Context(), id); err != nil || mine {
		t.Errorf("awake again it has the turn: %v, %v", mine, err)
	}
	if due, err := a.IsDue(t.Context()); err != nil || !due {
		t.Errorf("what the other has sent is not sent again: %v", err)
	}
}

// TestForgotten: nothing is noted for a mirror that nobody has any more; notes of
// hostile rows are no threads.
func TestForgotten(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	old, o := h.outbox("a", "one"), h.outbox("b", "two")
	h.must(old.Join(t.Context()))
	h.register(thread.KindDirective, "d")
	h.exec(`UPDATE mirrors SET seen_at = clock_timestamp() - interval '31 days'`)
	h.must(o.Join(t.Context()))
	h.exec(`INSERT INTO mirrors (mirror) VALUES (repeat('?', 32))`)
	h.exec(`INSERT INTO mirror_due (mirror, thread_id) VALUES ($1, '../../etc')`, o.Mirror)
	if due, err := old.IsDue(t.Context()); err != nil || due {
		t.Errorf("something is kept for it: %v", err)
	}
	if ids, err := mirrors.Of(t.Context(), h.store.Pool()); err != nil || !slices.Equal(ids, []string{o.Mirror}) {
		t.Errorf("mirrors %q, %v", ids, err)
	}
	if ids, err := o.List(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("%q are due, %v", ids, err)
	}
	for _, want := range []bool{true, false} {
		if due, err := o.BeginSweep(t.Context(), time.Hour); err != nil || due != want {
			t.Errorf("a sweep is due: %v, %v", due, err)
		}
	}
	none := &mirrors.Outbox{Pool: func() *pgxpool.Pool { return nil }, Mirror: o.Mirror}
	if due, err := none.IsDue(t.Context()); err != nil || due {
		t.Errorf("without a schema: %v, %v", due, err)
	}
}

// standing is how far the one mirror of the project is behind.
func (h *house) standing() mirrors.Standing {
	h.Helper()
	all, err := mirrors.Standings(h.Context(), h.store.Pool())
	h.must(err)
	if len(all) != 1 {
		h.Fatalf("%+v", all)
	}
	return all[0]
}

// TestStandings: how far a mirror is behind is told of the thread that waits longest, with
// whose turn it is and what the last attempt has met; texts of hostile rows are bounded.
func TestStandings(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := h.outbox("db7 0123456789abcdef", "one")
	h.must(o.Join(t.Context()))
	if s := h.standing(); s.Mirror != o.Mirror || s.Standing != (due.Standing{}) {
		t.Errorf("at first: %+v", s)
	}
	h.begin(o, true)
	id := h.register(thread.KindDirective, "d")
	h.register(thread.KindDirective, "d")
	h.exec(`UPDATE mirror_due SET since = '2026-03-04 12:00Z' WHERE thread_id = $1`, string(id))
	h.must(o.Tried(t.Context(), "it rains"))
	if s := h.standing(); s.Threads != 2 || !s.Oldest.Equal(noon) || s.Sender != "db7" || s.Failure != "it rains" || s.FailedAt.IsZero() {
		t.Errorf("behind: %+v", s)
	}
	h.must(o.Take(t.Context(), id))
	_, err := h.store.Label(t.Context(), id, store.LabelChange{Name: "named"}, noon)
	h.must(err)
	if s := h.standing(); !s.Oldest.Equal(noon) {
		t.Errorf("one that changes again waits since %s", s.Oldest)
	}
	_, err = o.Sent(t.Context(), id)
	h.must(err)
	h.must(o.End(t.Context()))
	h.must(o.Tried(t.Context(), ""))
	if s := h.standing(); s.Threads != 2 || s.Oldest.Equal(noon) || s.Sender != "" || s.Failure != "" {
		t.Errorf("sent, and changed meanwhile: %+v", s)
	}
	h.exec(`UPDATE mirrors SET sender = repeat('x', 100000), sends_until = 'infinity', failure = repeat('x', 200), failed_at = 'infinity'`)
	if s := h.standing(); len(s.Sender) > 100 || len(s.Failure) > 200 || !s.FailedAt.IsZero() {
		t.Errorf("%+v", s)
	}
}
