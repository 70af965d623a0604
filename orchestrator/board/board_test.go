package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestRow is what a row tells of a thread that works, asks, hands over, is resumed and ends.
func TestRow(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f := s.face(s.keeper())
	if b := f.look(); !b.Whole || len(b.Rows) != 0 || b.Version == "" {
		t.Fatalf("an empty project is %+v", b)
	}
	root := s.start("work", "")
	child := s.start("part", root)
	s.spend(child, 3)
	q := s.ask(child)
	b := f.look()
	if b.Whole || len(b.Rows) != 2 || b.Rows[0].Key != root || b.Rows[1].Parent != root {
		t.Fatalf("%+v", b)
	}
	if up := f.rows[root]; up.TreeSpend != 3 || up.Spend != 0 || up.Budget.Reserved != 100_000 || up.Budget.Left != 900_000 || up.Limits.Turns != 9 {
		t.Errorf("root is %s", text(up))
	}
	down := f.rows[child]
	if !down.Asks || down.Question == nil || down.Question.Means[thread.Raise] == "" || down.Turns != 3 || down.Context.Used != 300 || down.Context.Window != 200_000 {
		t.Errorf("child is %s", text(down))
	}
	if b.Totals.Asking != 1 || b.Totals.Working != 2 || b.Totals.Spend != 3 || b.Totals.Reserved != 100_000 {
		t.Errorf("totals are %+v", b.Totals)
	}
	s.answer(q)
	s.noError(s.any().SetProcess(s.ctx, child, thread.Process{PID: 1 << 30, Host: "elsewhere", Boot: "another", Worker: "build-1"}))
	s.end(child, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "turns_exceeded", Message: "too many"}})
	if b = f.look(); len(b.Rows) != 2 {
		t.Errorf("%d rows have changed, want 2", len(b.Rows))
	}
	if down = f.rows[child]; down.Asks || down.Question != nil || down.Error == nil || down.Error.Code != "turns_exceeded" || down.EndedAt == nil || down.Worker != "build-1" {
		t.Errorf("child is %s", text(down))
	}
	s.now = s.now.Add(time.Minute)
	again := s.begin(store.NewThread{Directive: "part", ContinuationOf: child, ParentID: root})
	if b = f.look(); len(b.Gone) != 0 {
		t.Errorf("a thread that was resumed went: %v", b.Gone)
	}
	if down = f.rows[child]; down.ThreadID != again || down.Links != 2 || len(down.Chain) != 2 || down.ChainCost.Turns != 3 || down.Turns != 0 || down.TreeSpend != 3 {
		t.Errorf("child is %s", text(down))
	}
	if b = f.look(); len(b.Rows)+len(b.Gone) != 0 || b.Whole {
		t.Errorf("nothing has changed, and %+v is told", b)
	}
	f.wantWhole()
}

// TestSet: a set stands for its entries, of which those have rows that work; each change of
// one is told, also those that change no thread that has a row.
func TestSet(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f := s.face(s.keeper())
	rec := s.register(store.NewThread{Kind: thread.KindSet, Directive: "map"})
	n := store.NewSet{Scope: "s", Content: "c", Concurrency: 2}
	for i := range 5 {
		n.Entries = append(n.Entries, store.NewEntry{Key: fmt.Sprint(i), Inputs: json.RawMessage(`{}`)})
	}
	_, err := s.store.OpenSet(s.ctx, rec.ThreadID, rec.Run, n, s.now)
	s.noError(err)
	set := rec.ThreadID
	want := func(what string, want board.Entries, rows, omitted int) {
		t.Helper()
		f.look()
		want.Items = 5
		if got := f.rows[set].Entries; *got != want || len(f.rows) != rows || f.last.Omitted != omitted {
			t.Errorf("%s: entries %+v, %d rows, %d omitted, want %+v, %d and %d", what, *got, len(f.rows), f.last.Omitted, want, rows, omitted)
		}
		f.wantWhole()
	}
	entry := func(position int) thread.ID {
		return s.begin(store.NewThread{Directive: "entry", ParentID: set, Entry: position + 1, EntryKey: "key"})
	}
	want("opened", board.Entries{Waiting: 5}, 1, 0)
	first, second := entry(0), entry(1)
	below := s.start("below", second)
	want("two work", board.Entries{Waiting: 3, Working: 2}, 4, 0)
	s.end(first, thread.Outcome{State: thread.Completed})
	want("one has completed", board.Entries{Waiting: 3, Working: 1, Completed: 1}, 3, 0)
	s.noError(s.store.RefuseEntry(s.ctx, set, 2, thread.Problem{Code: "no"}, s.now))
	want("one was refused", board.Entries{Waiting: 2, Working: 1, Completed: 1, Failed: 1}, 3, 0)
	s.end(second, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "x"}})
	want("what was started by one that failed works", board.Entries{Waiting: 2, Completed: 1, Failed: 2}, 3, 0)
	s.end(below, thread.Outcome{State: thread.Completed})
	s.end(set, thread.Outcome{State: thread.Completed})
	want("all have ended", board.Entries{Waiting: 2, Completed: 1, Failed: 2}, 1, 0)
	again := s.begin(store.NewThread{Directive: "entry", ContinuationOf: second})
	want("one was resumed", board.Entries{Waiting: 2, Working: 1, Completed: 1, Failed: 1}, 2, 0)
	s.end(again, thread.Outcome{State: thread.Completed})
	want("it has completed", board.Entries{Waiting: 2, Completed: 2, Failed: 1}, 1, 0)
	refused, err := s.store.Delete(s.ctx, [][]thread.ID{{first}}, s.now)
	s.noError(errors.Join(err, refused[0]))
	want("one was deleted", board.Entries{Waiting: 2, Completed: 1, Failed: 1, Deleted: 1}, 1, 0)
}

// TestEntryTriedAgain: an entry that has failed and is tried again has not failed.
func TestEntryTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f := s.face(s.keeper())
	rec := s.register(store.NewThread{Kind: thread.KindSet, Directive: "map"})
	_, err := s.store.OpenSet(s.ctx, rec.ThreadID, rec.Run, store.NewSet{
		Scope: "s", Content: "c", Concurrency: 1, Entries: []store.NewEntry{{Key: "0", Inputs: json.RawMessage(`{}`)}},
	}, s.now)
	s.noError(err)
	first := s.begin(store.NewThread{Directive: "entry", ParentID: rec.ThreadID, Entry: 1, EntryKey: "key"})
	failed, err := store.Finished(first, thread.Outcome{
		State: thread.Error, Error: &thread.Problem{Code: "x", Passing: true}, Retry: &thread.Retry{At: s.now.Add(time.Minute), Attempt: 2, Attempts: 2},
	}, nil, s.now)
	s.noError(err)
	now, err := s.store.Get(s.ctx, first)
	s.noError(err)
	_, err = s.store.Runner(first, now.Run).Apply(s.ctx, failed)
	s.noError(err)
	f.look()
	if got := *f.rows[rec.ThreadID].Entries; got != (board.Entries{Items: 1, Waiting: 1}) || f.rows[first].RetryAt == nil || f.last.Totals.Ended != 0 {
		t.Errorf("while it waits: %+v, %+v, %+v", got, f.rows[first], f.last.Totals)
	}
	_, err = s.store.DropRetry(s.ctx, first, "no key", s.now)
	s.noError(err)
	f.look()
	if got := *f.rows[rec.ThreadID].Entries; got != (board.Entries{Items: 1, Failed: 1}) {
		t.Errorf("when that was given up: %+v", got)
	}
}

// TestEnded: of the threads that have ended those are shown that were used last, with what
// is above them; the rest is counted, and what is deleted goes.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.ended = store.EndedMost{Any: 2, Roots: 1}
	f := s.face(s.keeper())
	var ids []thread.ID
	for range 4 {
		s.now = s.now.Add(time.Minute)
		ids = append(ids, s.start("work", ""))
		s.end(ids[len(ids)-1], thread.Outcome{State: thread.Completed})
	}
	if f.look(); f.rows[ids[3]] == nil || f.rows[ids[2]] == nil || len(f.rows) != 2 || f.last.Omitted != 2 || f.last.Totals.Ended != 2 {
		t.Errorf("shown are %d, and %+v", len(f.rows), f.last)
	}
	_, err := s.store.Label(s.ctx, ids[3], store.LabelChange{Name: "renamed"}, s.now)
	s.noError(err)
	if f.look(); len(f.last.Rows) != 1 || f.rows[ids[3]].Name != "renamed" {
		t.Errorf("renamed: %+v", f.last)
	}
	s.now = s.now.Add(-24 * time.Hour) // the clock is put back
	early := s.start("early", "")
	s.end(early, thread.Outcome{State: thread.Completed})
	f.look()
	f.wantWhole()
	refused, err := s.store.Delete(s.ctx, [][]thread.ID{{ids[3]}}, s.now)
	s.noError(errors.Join(err, refused[0]))
	if f.look(); !slices.Contains(f.last.Gone, ids[3]) || f.rows[ids[1]] == nil {
		t.Errorf("after a deletion: %+v", f.last)
	}
	f.wantWhole()
}

// TestChangesApplied: a row says that what its thread has changed was applied since it has ended,
// at the next look, at the first look of another server, and to whoever follows, although no
// commit tells it.
func TestChangesApplied(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("work", "")
	meta, err := s.all.Records.Of(id).Meta().Read()
	s.noError(err)
	meta.Workspace = &thread.Workspace{Of: id}
	s.noError(s.all.Records.Of(id).Meta().Write(meta))
	s.end(id, thread.Outcome{State: thread.Completed, Changes: &thread.Changes{Added: 2}})
	var at atomic.Pointer[time.Time]
	apply := func(when time.Time) { at.Store(&when) }
	keeper := func() *board.Keeper {
		return board.New(board.Deps{
			Threads: s.all, Feed: s.feed, CheckEvery: time.Millisecond, Verify: func(context.Context, thread.ID) (bool, error) { return true, nil },
			AppliedAt: func(w thread.Workspace) time.Time {
				if w.Of != id {
					t.Errorf("asked for the workspace of %s", w.Of)
				}
				return *at.Load()
			},
		})
	}
	apply(s.now.Add(-time.Hour)) // before it was resumed, say
	f := s.face(keeper())
	if f.look(); f.rows[id].Applied || f.rows[id].Changes.Count() != 2 {
		t.Errorf("before: %s", text(f.rows[id]))
	}
	follows, seen := keeper(), errors.New("seen")
	defer follows.Close()
	err = follows.Follow(s.ctx, "", board.Options{}, func(b board.Board) error {
		apply(s.now.Add(time.Hour))
		for _, row := range b.Rows {
			if row.Applied {
				return seen
			}
		}
		return nil
	})
	if !errors.Is(err, seen) {
		t.Error("whoever follows is not told: ", err)
	}
	for _, f := range []*shown{f, s.face(keeper())} {
		if f.look(); !f.rows[id].Applied {
			t.Errorf("afterwards: %s", text(f.rows[id]))
		}
	}
}
