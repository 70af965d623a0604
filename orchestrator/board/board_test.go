package board_test

import (
	"testing"
	"time"

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
	s.end(child, thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "turns_exceeded", Message: "too many"}})
	if b = f.look(); len(b.Rows) != 2 {
		t.Errorf("%d rows have changed, want 2", len(b.Rows))
	}
	if down = f.rows[child]; down.Asks || down.Question != nil || down.Error == nil || down.Error.Code != "turns_exceeded" || down.EndedAt == nil {
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
