package announce

import (
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// house is a store whose announcements are counted.
type house struct {
	*testing.T
	*Store
	sent int
	not  thread.NewsKind // what nobody wants to hear of
}

func newHouse(t *testing.T) *house {
	t.Helper()
	inner, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	h := &house{T: t}
	h.Store = &Store{
		Store: inner, Now: func() time.Time { return noon }, Send: func() { h.sent++ },
		Wants: func(kind thread.NewsKind) bool { return kind != h.not }, Failed: func(err error) { t.Error(err) },
	}
	return h
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) wantSent(what string, want int) {
	h.Helper()
	if h.sent != want {
		h.Errorf("%s: %d senders were started, want %d", what, h.sent, want)
	}
	h.sent = 0
}

// thread is a running thread with a budget.
func (h *house) thread(directive string, parent thread.ID, most thread.Micros) thread.ID {
	h.Helper()
	rec, _, err := store.Register(h.Context(), h, store.NewThread{
		Kind: thread.KindDirective, Directive: directive, ParentID: parent, MaxSpawns: 9, Now: noon,
	}, func(thread.ID) error { return nil })
	h.must(err)
	_, err = h.by(rec.ThreadID).Apply(h.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, noon))
	h.must(err)
	if parent == "" {
		h.must(h.OpenRoot(h.Context(), rec.ThreadID, most, noon))
	} else {
		h.must(h.Reserve(h.Context(), rec.ThreadID, parent, most, noon))
	}
	return rec.ThreadID
}

func (h *house) by(id thread.ID) store.Runner {
	rec, err := h.Get(h.Context(), id)
	h.must(err)
	return h.Runner(id, rec.Run)
}

func (h *house) report(id thread.ID, spent thread.Micros) {
	h.Helper()
	h.must(h.by(id).Report(h.Context(), spent, noon))
}

func (h *house) end(id thread.ID, o thread.Outcome) error {
	c, err := store.Finished(id, o, nil, noon)
	h.must(err)
	_, err = h.by(id).Apply(h.Context(), c)
	return err
}

func TestEndsAndQuestions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.thread("work", "", 100)
	h.wantSent("a start", 0)
	q := thread.Question{
		ID: "q", ThreadID: id, Kind: thread.AskHook, Options: []thread.Decision{thread.Stop}, Default: thread.Stop, AskedAt: noon, DeadlineAt: noon,
	}
	h.must(h.by(id).Ask(t.Context(), q))
	h.wantSent("a question", 1)
	h.must(h.end(id, thread.Outcome{State: thread.Completed}))
	h.wantSent("an end", 1)
	if h.end(id, thread.Outcome{State: thread.Error}) == nil {
		t.Error("it ended twice")
	}
	h.wantSent("an end that was refused", 0)
	handed := h.thread("long", "", 100)
	h.must(h.end(handed, thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: "nobody"}}))
	h.wantSent("one that is continued", 0)
	h.not = thread.Ended
	h.must(h.end(h.thread("dull", "", 100), thread.Outcome{State: thread.Completed}))
	h.wantSent("an end nobody wants to hear of", 0)
}

// The budget of a root is news once, when it and all below it have spent 80 % of it.
func TestBudget(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	root := h.thread("work", "", 1000)
	child := h.thread("child", root, 600)
	h.report(root, 300)
	h.report(child, 499)
	h.wantSent("79.9 %", 0)
	h.report(child, 500)
	h.wantSent("80 %", 1)
	h.report(child, 590)
	h.report(root, 390)
	h.wantSent("more", 0)
	other := &Store{Store: h.Store.Store, Now: h.Now, Send: h.Send, Wants: h.Wants, Failed: h.Failed} // another process
	rec, err := h.Get(t.Context(), root)
	h.must(err)
	h.must(other.Runner(root, rec.Run).Report(t.Context(), 395, noon))
	h.wantSent("another process", 0)
	h.not = thread.Budget80
	quiet := h.thread("quiet", "", 10)
	h.report(quiet, 10)
	h.wantSent("nobody wants to know", 0)
	h.not = ""
	free := h.thread("free", "", 0)
	h.report(free, 0)
	h.wantSent("one that may spend nothing", 0)
}

// TestSuite: a store whose changes are announced does what every store does.
func TestSuite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return newHouse(t).Store }, "State", "Questions", "Fence")
}

// follower writes down what it is told.
type follower struct{ told []string }

func (f *follower) Changing(id thread.ID) { f.told = append(f.told, string(id)) }
func (f *follower) Changed(id thread.ID)  { f.told = append(f.told, "changed "+string(id)) }

// TestMirror: each change of a thread is told of before it is made, and after.
func TestMirror(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	f := &follower{}
	h.Mirror = f
	want := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(f.told, want) {
			t.Errorf("%s: %q, want %q", what, f.told, want)
		}
		f.told = nil
	}
	id := h.thread("d", "", 0)
	want("start and claim", string(id), "changed "+string(id), string(id), "changed "+string(id))
	_, err := h.Label(t.Context(), id, store.LabelChange{Name: "named"}, noon)
	h.must(err)
	want("name", string(id), "changed "+string(id))
	ended, err := store.Finished(id, thread.Outcome{State: thread.Completed}, nil, noon)
	h.must(err)
	_, err = h.by(id).Apply(t.Context(), ended)
	h.must(err)
	want("end", string(id), "changed "+string(id))
	if _, err = h.by(id).Apply(t.Context(), ended); err == nil {
		t.Error("it ended twice")
	}
	want("a change that fails", string(id))
	next, _, err := store.Register(t.Context(), h, store.NewThread{Kind: thread.KindDirective, Directive: "d", ContinuationOf: id, Now: noon}, func(thread.ID) error { return nil })
	h.must(err)
	f.told = nil
	h.must(h.Link(t.Context(), id, next.ThreadID, noon))
	want("continued", string(id), "changed "+string(id))
}
