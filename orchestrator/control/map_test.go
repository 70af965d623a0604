package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// itemDirective has an input, one that is a file, and a limit of its own.
const itemDirective = "# Item\n\n```xml\n" + `<directive name="item" version="1.0.0">
  <metadata><description>Do one</description><model tier="fast" /><limits spend="0.01" />%s</metadata>
  <inputs><input name="n" type="integer" required="true" /><input name="of" type="file" /></inputs>
</directive>
` + "```\n\nDo {input:n}.\n"

// mapping is a scene with the directive item. Its puppets complete at once where atOnce
// is set.
func mapping(t testing.TB, atOnce bool) *scene {
	s := newScene(t)
	s.write("directives/item.md", fmt.Sprintf(itemDirective, ""))
	if atOnce {
		s.env = nil
		s.c = s.controller()
	}
	return s
}

// numbered are n items from a first.
func numbered(first, n int) (items []map[string]any) {
	for i := range n {
		items = append(items, map[string]any{"n": int64(first + i)})
	}
	return items
}

func ofItems(items []map[string]any, concurrency int) MapRequest {
	return MapRequest{Request: fanout.Request{Directive: "item", Items: items, Concurrency: concurrency}}
}

// mapped maps, and waits until all is over.
func (s *scene) mapped(c *Controller, by action.Caller, r MapRequest) fanout.Answer {
	s.Helper()
	a, err := c.Map(s.ctx, by, r)
	s.noError(err)
	return a
}

// begun opens a set and does not wait for it.
func (s *scene) begunSet(r MapRequest) thread.ID {
	s.Helper()
	r.Async = true
	return s.mapped(s.c, action.Caller{Person: true}, r).ThreadID
}

// workers are the threads of a set that have not ended, in the order of their items.
func (s *scene) workers(set thread.ID) (ids []thread.ID) {
	s.Helper()
	entries, err := s.c.Threads.Store.Entries(s.ctx, set, 0, fanout.MaxItems)
	s.noError(err)
	for _, e := range entries {
		if e.Last != "" && !e.Status.Terminal() {
			ids = append(ids, e.Last)
		}
	}
	return ids
}

func (s *scene) wantCounts(a fanout.Answer, want fanout.Counts) {
	s.Helper()
	if a.Counts != want {
		s.Errorf("counts %+v, want %+v; %s", a.Counts, want, a.Error)
	}
}

var atTerminal = action.Caller{Person: true}

// TestMapBounded runs a set of five, two at a time: the process in which one ends starts
// the next. Money comes out of one reservation.
func TestMapBounded(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	set := s.begunSet(ofItems(numbered(0, 5), 2))
	if b, err := s.c.Threads.Store.Budget(s.ctx, set); err != nil || b.MaxSpend != 50_000 || b.Reserved != 20_000 {
		t.Errorf("budget of the set: %+v (%v)", b, err)
	}
	var started []thread.ID
	for range 5 {
		working := s.workers(set)
		if len(working) == 0 || len(working) > 2 {
			t.Fatalf("%v work", working)
		}
		next := working[0]
		started = append(started, next)
		s.order(next, "claim", "spend 3", "complete")
		s.gone(next)
	}
	if r := s.wait(s.c, WaitAll, set).Results[set]; r.Status != thread.Completed || r.Result != "5 of 5 items completed" {
		t.Errorf("set: %+v", r)
	}
	s.wantTree(set, store.TreeSpend{Actual: 15, Threads: 6})
	a := s.mapped(s.c, atTerminal, MapRequest{Set: set})
	s.wantCounts(a, fanout.Counts{Items: 5, Completed: 5})
	if !a.Success || a.Spend != 15 || len(a.Items) != 5 || a.Items[4].Result != "result of "+string(started[4]) {
		t.Errorf("answer %+v", a)
	}
	if once := slices.Compact(slices.Sorted(slices.Values(started))); len(once) != 5 {
		t.Errorf("started %v", started)
	}
}

// gone waits until the process of a puppet has ended, after which the next was started.
func (s *scene) gone(id thread.ID) {
	s.Helper()
	p := s.puppet(id)
	select {
	case <-p.gone:
	case <-s.ctx.Done():
	}
}

// TestMapAgain runs a set of which one fails and one dies; the same call runs those two
// alone, and then nothing.
func TestMapAgain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	req := ofItems(numbered(0, 4), 4)
	set := s.begunSet(req)
	work := s.workers(set)
	s.order(work[0], "claim", "complete")
	s.noError(syscall.Kill(s.puppet(work[1]).pid, syscall.SIGKILL))
	s.order(work[2], "claim", "decide") // and settled by others
	s.noError(syscall.Kill(s.puppet(work[2]).pid, syscall.SIGKILL))
	s.order(work[3], "claim", "give-up")
	a := s.mapped(s.c, atTerminal, MapRequest{Set: set})
	s.wantCounts(a, fanout.Counts{Items: 4, Completed: 2, Failed: 2})
	if a.Success || a.ThreadID != set || !a.Existing || a.Status != thread.Error || len(a.Items) != 4 || a.Items[0].Item != 1 || a.Items[1].Item != 3 {
		t.Errorf("answer %+v", a)
	}
	if !strings.Contains(a.Error, "2 of 4 items completed; not item 1: ") {
		t.Errorf("error %q", a.Error)
	}
	second := s.begunSet(req)
	if second == set {
		t.Fatalf("the set %s has ended", set)
	}
	if work = s.workers(second); len(work) != 2 {
		t.Errorf("%v work", work)
	}
	for _, id := range work {
		s.order(id, "claim", "complete")
	}
	for range 2 {
		a = s.mapped(s.c, atTerminal, req)
		s.wantCounts(a, fanout.Counts{Items: 4, Completed: 4, Reused: 2})
		if !a.Success || a.ThreadID != second {
			t.Errorf("answer %+v", a)
		}
	}
}

// A failed item that was resumed has completed, and with it the set that a call finds.
func TestMapResumedItem(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	s.write("directives/item.md", fmt.Sprintf(itemDirective, ""))
	req := ofItems(numbered(0, 2), 2)
	set := s.begunSet(req)
	work := s.workers(set)
	s.order(work[0], "claim", "complete")
	s.order(work[1], "claim", "say hello")
	s.shoot(work[1])
	if a := s.mapped(s.c, atTerminal, MapRequest{Set: set}); a.Success || a.Status != thread.Error || a.Error == "" {
		t.Errorf("one has failed: %+v", a)
	}
	s.order(s.resume(work[1]).NewThreadID, "complete")
	for name, again := range map[string]MapRequest{"looked at": {Set: set}, "called again": req} {
		a := s.mapped(s.c, atTerminal, again)
		s.wantCounts(a, fanout.Counts{Items: 2, Completed: 2})
		if !a.Success || a.Status != thread.Completed || a.Error != "" || a.ThreadID != set || a.Next != "" {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// A call that waits for a set whose items ask is over at once and tells their questions, to
// a client and to the thread that maps; lists mark the set.
func TestMapTellsQuestions(t *testing.T) {
	t.Parallel()
	s := mapping(t, false)
	parent := inThread(s.start("work", ""))
	parent.Allow = func(string) error { return nil }
	for name, by := range map[string]action.Caller{"client": {By: "a model"}, "thread": parent} {
		req := ofItems(numbered(0, 2), 2)
		req.Async = true
		set := s.mapped(s.c, by, req).ThreadID
		work := s.workers(set)
		for _, id := range work {
			s.order(id, "claim")
			s.asks(id)
		}
		a := s.mapped(s.c, by, MapRequest{Set: set})
		if len(a.Waiting) != 2 || !strings.Contains(a.Next, "approve_thread") || a.Counts.Working != 2 || len(a.Tells()) != 3 {
			t.Errorf("%s is told %+v", name, a)
		}
		by.Room = 1
		patient := 0.0
		if a = s.mapped(s.c, by, MapRequest{Set: set, WaitSeconds: &patient}); len(a.Waiting) != 1 {
			t.Errorf("%s, who has no room, is told %+v", name, a)
		}
		list, err := s.c.View.List(s.ctx, view.ListRequest{States: []thread.State{thread.Running}})
		s.noError(err)
		for _, one := range list.Threads {
			if one.Asks != (one.ThreadID == set) {
				t.Errorf("%s: %s asks: %v", name, one.ThreadID, one.Asks)
			}
		}
		for _, id := range work {
			s.order(id, "complete")
		}
		s.wait(s.c, WaitAll, set)
	}
	s.order(parent.Env.ThreadID, "complete")
}

// TestMapMoves kills what works of a set for which nobody waits: a process that moves the
// queue starts the next, and settles the set in the end.
func TestMapMoves(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	set := s.begunSet(ofItems(numbered(0, 2), 1))
	for range 2 {
		var work []thread.ID
		for work = s.workers(set); len(work) == 0 && s.ctx.Err() == nil; work = s.workers(set) { // its finder is about to start the next
			runtime.Gosched()
		}
		s.noError(syscall.Kill(s.puppet(work[0]).pid, syscall.SIGKILL))
		for s.row(work[0]).Status != thread.Error && s.ctx.Err() == nil {
			s.noError(s.controller().Queue.Dispatch(s.ctx))
		}
	}
	for s.row(set).Status == thread.Running && s.ctx.Err() == nil {
		s.noError(s.controller().Queue.Dispatch(s.ctx))
	}
	s.wantState(thread.Error, set)
}

// leases is a life that notes which rights are asked for.
type leases struct {
	life.Life
	asked []string
}

func (l *leases) Lease(name string) (life.Hold, error) {
	l.asked = append(l.asked, name)
	return l.Life.Lease(name)
}

// TestMapWithoutKey has a set moved by who has no key for its model: that one does not even
// take the right to, so that one with the key who comes meanwhile finds it free.
func TestMapWithoutKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	with := s.controller("ANTHROPIC_API_KEY=k")
	req := ofItems(numbered(0, 2), 1)
	req.Model, req.Async = "anthropic/claude-haiku-4-5", true
	set := s.mapped(with, atTerminal, req).ThreadID
	first := s.workers(set)[0]
	s.order(first, "claim", "complete")
	s.gone(first) // it has no key either
	without := &leases{Life: s.c.Threads.Life}
	s.c.Threads.Life = without
	s.noError(s.c.Queue.Dispatch(s.ctx))
	if work := s.workers(set); len(work) != 0 || len(without.asked) != 0 {
		t.Errorf("%v work, %q was asked for", work, without.asked)
	}
	s.noError(with.Queue.Dispatch(s.ctx))
	if work := s.workers(set); len(work) != 1 {
		t.Errorf("%v work", work)
	}
}

// TestMapKeys changes what a result depends on, one by one: the items concerned run again.
func TestMapKeys(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, true)
	file := filepath.Join(s.project, "a.txt")
	s.noError(os.WriteFile(file, []byte("one"), 0o600))
	items := append(numbered(0, 2), map[string]any{"n": int64(9), "of": "a.txt"})
	reused := func(r MapRequest) int {
		s.Helper()
		a := s.mapped(s.c, atTerminal, r)
		if !a.Success {
			t.Fatalf("answer %+v", a)
		}
		if a.Existing {
			return len(items)
		}
		return a.Counts.Reused
	}
	req := ofItems(items, 3)
	steps := []struct {
		name   string
		change func()
		want   int
	}{
		{"nothing was there", func() {}, 0},
		{"nothing", func() {}, 3},
		{"another order", func() { slices.Reverse(req.Items) }, 3},
		{"a file of one", func() { s.noError(os.WriteFile(file, []byte("two"), 0o600)) }, 2},
		{"that file as it was", func() { s.noError(os.WriteFile(file, []byte("one"), 0o600)) }, 3},
		{"the model", func() { req.Model = "high" }, 0},
		{"the model as it was", func() { req.Model = "" }, 3},
		{"rights", func() {
			s.write("directives/item.md", fmt.Sprintf(itemDirective, "<permissions><execute><tool>rye.file-system.read</tool></execute></permissions>"))
		}, 0},
		{"a request key", func() { req.RequestKey = "mine" }, 0},
		{"nothing, by that key", func() {}, 3},
	}
	for _, step := range steps {
		step.change()
		if got := reused(req); got != step.want {
			t.Errorf("after a change of %s %d of 3 were used again, want %d", step.name, got, step.want)
		}
	}
}

// TestMapDeleted deletes the thread of an item: that item alone runs again.
func TestMapDeleted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, true)
	req := ofItems(numbered(0, 3), 3)
	first := s.mapped(s.c, atTerminal, req)
	_, err := s.c.Tidy.Delete(s.ctx, tidy.DeleteRequest{ThreadID: first.Items[1].ThreadID, Agreed: true})
	s.noError(err)
	again := s.mapped(s.c, atTerminal, MapRequest{Set: first.ThreadID})
	s.wantCounts(again, fanout.Counts{Items: 3, Completed: 2, Failed: 1})
	if one := again.Items[0]; one.Item != 1 || one.Problem == nil || one.Problem.Code != "deleted" {
		t.Errorf("item %+v", one)
	}
	s.wantCounts(s.mapped(s.c, atTerminal, req), fanout.Counts{Items: 3, Completed: 3, Reused: 2})
}

// TestMapManyServers has several servers call for one set at once: there is one set, and
// each item has one thread.
func TestMapManyServers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const servers, items = 4, 12
	s := mapping(t, true)
	answers := make(chan error, servers)
	var sets [servers]thread.ID
	for i := range servers {
		c := s.controller()
		go func() {
			a, err := c.Map(s.ctx, atTerminal, ofItems(numbered(0, items), 5))
			sets[i] = a.ThreadID
			if err == nil && !a.Success {
				err = fmt.Errorf("answer %+v", a)
			}
			answers <- err
		}()
	}
	for range servers {
		s.noError(<-answers)
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(sets[:])))); n != 1 {
		t.Errorf("%d sets: %v", n, sets)
	}
	rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{Limit: store.MaxPage})
	s.noError(err)
	if len(rows) != items+1 {
		t.Errorf("%d threads", len(rows))
	}
}

// TestMapOpenedMeanwhile looks at a set by a row that was read just before it was opened,
// as another server does: it is not dead.
func TestMapOpenedMeanwhile(t *testing.T) {
	t.Parallel()
	s := mapping(t, false)
	var before []thread.Record
	s.c.Threads.Crashpoints = func(at thread.Crashpoint) {
		if at != fanout.CrashDescribed {
			return
		}
		rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{})
		s.noError(err)
		before = rows
	}
	set := s.begunSet(ofItems(numbered(0, 2), 1))
	if len(before) != 1 || before[0].Status != thread.Created {
		t.Fatalf("before it was opened: %+v", before)
	}
	if now, err := s.c.Threads.Sweeper.Examine(s.ctx, before[0]); err != nil || now.Status != thread.Running {
		t.Fatalf("it is %s (%v): %+v", now.Status, err, now.Outcome)
	}
	for range 2 {
		next := s.workers(set)[0]
		s.order(next, "claim", "complete")
		s.gone(next)
	}
	s.wantCounts(s.mapped(s.c, atTerminal, MapRequest{Set: set}), fanout.Counts{Items: 2, Completed: 2})
}

// mapSteps are the steps of starting a set and its entries.
func mapSteps() []thread.Crashpoint {
	return slices.Concat(fanout.Crashpoints(), []thread.Crashpoint{
		scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed, scheduler.CrashQueued, scheduler.CrashLaunched, scheduler.CrashRecorded,
	})
}

// wantRuns fails the test unless so many threads of a directive have completed.
func (s *scene) wantRuns(want int) {
	s.Helper()
	rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{States: []thread.State{thread.Completed}, Directive: "item"})
	s.noError(err)
	runs := 0
	for _, rec := range rows {
		if rec.Kind == thread.KindDirective {
			runs++
		}
	}
	if runs != want {
		s.Errorf("%d items ran", runs)
	}
}

// TestKilledMapper kills a caller at each step of starting a set and its entries. The
// same call by another finishes all, each item once.
func TestKilledMapper(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, at := range mapSteps() {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := mapping(t, true)
			s.dieAfter(at, "map", "")
			req := ofItems(numbered(0, 3), 2)
			a := s.mapped(s.c, atTerminal, req)
			for range 3 {
				if a.Success {
					break
				}
				a = s.mapped(s.c, atTerminal, req) // a starter that died has failed an item
			}
			if !a.Success || a.Counts.Completed != 3 {
				t.Fatalf("answer %+v", a)
			}
			s.wantRuns(3)
			active, err := s.c.Threads.Store.Active(s.ctx)
			if s.noError(err); len(active) > 0 {
				t.Errorf("budgets are held: %+v", active)
			}
		})
	}
}

// TestMapCancelled cancels a set: entries that work end, those that wait are not started,
// and the same call goes on from there.
func TestMapCancelled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	req := ofItems(numbered(0, 4), 2)
	set := s.begunSet(req)
	work := s.workers(set)
	s.order(work[0], "claim", "complete")
	s.gone(work[0])
	for _, id := range s.workers(set) {
		s.order(id, "claim")
	}
	stopped, err := s.c.Stop.Cancel(s.ctx, set)
	if s.noError(err); !stopped.Success || len(stopped.Receipts) != 4 || stopped.Receipts[0].Status != thread.Cancelled {
		t.Errorf("stopped %+v", stopped)
	}
	a := s.mapped(s.c, atTerminal, MapRequest{Set: set})
	s.wantCounts(a, fanout.Counts{Items: 4, Completed: 1, Failed: 2, Waiting: 1})
	if a.Status != thread.Cancelled || a.Error != "cancelled; 1 of 4 items completed" {
		t.Errorf("answer %+v", a)
	}
	second := s.begunSet(ofItems(numbered(0, 4), 4))
	work = s.workers(second)
	if len(work) != 3 {
		t.Errorf("%v work", work)
	}
	for _, id := range work {
		s.order(id, "claim", "complete")
	}
	s.wantCounts(s.mapped(s.c, atTerminal, req), fanout.Counts{Items: 4, Completed: 4, Reused: 1})
}

// TestMapInThread has a thread map: spawns, money and rights are its own, and a set
// outlives it where it completes.
func TestMapInThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	parent := s.start("work", "") // 0.01 and 50 spawns, of a limit of 1
	req := ofItems(numbered(0, 3), 1)
	req.Async = true
	a := s.mapped(s.c, inThread(parent), req)
	if got := s.row(parent).SpawnCount; got != 3 {
		t.Errorf("%d spawns were counted", got)
	}
	if b, err := s.c.Threads.Store.Budget(s.ctx, parent); err != nil || b.Reserved != 30_000 {
		t.Errorf("budget of the parent: %+v (%v)", b, err)
	}
	var many *store.SpawnsError
	if _, err := s.c.Map(s.ctx, inThread(parent), ofItems(numbered(0, 48), 1)); !errors.As(err, &many) {
		t.Errorf("more children than may be: %v", err)
	}
	first := s.workers(a.ThreadID)[0]
	meta, err := s.c.Threads.OwnMeta(first)
	if s.noError(err); len(meta.Ceiling) != 1 || !slices.Equal(meta.Ceiling[0], meta.Own()) {
		t.Errorf("the entry has %v below %v", meta.Own(), meta.Ceiling)
	}
	if above, err := s.c.Threads.OwnMeta(parent); err != nil || meta.Limits.Depth != above.Limits.Depth-1 || !slices.Equal(meta.Own(), above.Own()) {
		t.Errorf("depth %d below %d, rights %v of %v (%v)", meta.Limits.Depth, above.Limits.Depth, meta.Own(), above.Own(), err)
	}
	s.order(parent, "complete")
	s.gone(parent) // it moves the queue first
	for range 3 {
		next := s.workers(a.ThreadID)[0]
		s.order(next, "claim", "complete")
		s.gone(next)
	}
	s.wait(s.c, WaitAll, a.ThreadID)
	s.wantState(thread.Completed, parent, a.ThreadID)
	// The work of another thread is not used again.
	other := s.start("work", "")
	req.Items = req.Items[:1]
	s.wantCounts(s.mapped(s.c, inThread(other), req), fanout.Counts{Items: 1, Working: 1})
}

// TestMapMoney holds a set to its max_spend: entries wait for what others give back, and
// are refused when nothing is left.
func TestMapMoney(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	req := ofItems(numbered(0, 3), 3)
	most := thread.Micros(15_000)
	req.MaxSpend = &most
	set := s.begunSet(req)
	if work := s.workers(set); len(work) != 1 {
		t.Errorf("%v work with money for one", work)
	}
	first := s.workers(set)[0]
	s.order(first, "claim", "spend 4000", "complete")
	s.gone(first)
	second := s.workers(set)
	if len(second) != 1 {
		t.Fatalf("%v work with money for one", second)
	}
	s.order(second[0], "claim", "spend 5000", "complete")
	a := s.mapped(s.c, atTerminal, MapRequest{Set: set})
	s.wantCounts(a, fanout.Counts{Items: 3, Completed: 2, Failed: 1})
	if p := a.Items[0].Problem; a.Spend != 9000 || p == nil || p.Code != string(tool.CodeBudgetExhausted) {
		t.Errorf("answer %+v", a)
	}
}

// TestMapRefused gives what cannot be: nothing is registered.
func TestMapRefused(t *testing.T) {
	t.Parallel()
	s := mapping(t, false)
	s.write("directives/hidden.md", "```xml\n<directive name=\"hidden\" version=\"1.0.0\"><metadata><model tier=\"fast\" /></metadata>"+
		"<inputs><input name=\"n\" type=\"string\" secret=\"true\" /></inputs></directive>\n```\n\nUse it.\n")
	negative := thread.Micros(-1)
	for want, r := range map[string]MapRequest{
		"items is empty":                 ofItems(nil, 1),
		"item 1: invalid inputs: n is":   ofItems(append(numbered(0, 1), map[string]any{}), 1),
		`item 0: invalid inputs: "m" is`: ofItems([]map[string]any{{"n": int64(1), "m": 2}}, 1),
		"item 2 is the same as item 0":   ofItems(append(numbered(0, 2), numbered(0, 1)...), 1),
		"concurrency 257":                ofItems(numbered(0, 1), 257),
		"max_spend must be":              {Request: fanout.Request{Directive: "item", Items: numbered(0, 1), MaxSpend: &negative}},
		"nowhere":                        {Request: fanout.Request{Directive: "nowhere", Items: numbered(0, 1)}},
		"secret inputs":                  {Request: fanout.Request{Directive: "hidden", Items: []map[string]any{{"n": "0123456789abcdef"}}}},
		"no such thread":                 {Set: "item-1"},
	} {
		_, err := s.c.Map(s.ctx, atTerminal, r)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	root := s.start("idle", "")
	if _, err := s.c.Map(s.ctx, atTerminal, MapRequest{Set: root}); err == nil || !strings.Contains(err.Error(), "is no set") {
		t.Errorf("a thread as a set: %v", err)
	}
	rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{})
	if s.noError(err); len(rows) != 1 {
		t.Errorf("%d threads are registered", len(rows))
	}
}

// TestMapPages reads a set whose answer does not fit, page by page, the failed first.
func TestMapPages(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, true)
	all := s.mapped(s.c, atTerminal, ofItems(numbered(0, 30), 10))
	seen := []int{}
	by := action.Caller{Person: true, Room: 3000}
	for next := string(all.ThreadID); next != ""; {
		set, cursor := fanout.ParseCursor(next)
		page := s.mapped(s.c, by, MapRequest{Set: set, Cursor: cursor})
		for _, one := range page.Items {
			seen = append(seen, one.Item)
		}
		if next = page.NextCursor; len(page.Items) == 30 {
			t.Fatal("all fits")
		}
	}
	if len(seen) != 30 || !slices.IsSorted(seen) {
		t.Errorf("read %v", seen)
	}
	for _, bad := range []string{"x", "c", "f-1", "c99999999999999999999"} {
		if _, err := s.c.Map(s.ctx, by, MapRequest{Set: all.ThreadID, Cursor: bad}); !errors.Is(err, store.ErrBadCursor) {
			t.Errorf("cursor %q: %v", bad, err)
		}
	}
}

// TestAttackMappedItem: an item of map_threads brings other rights, a model or limits than the directive has, and somebody starts directives below the set.
// Items are inputs alone, and nothing but its items is started below a set.
func TestAttackMappedItem(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	parent := s.start("idle", "")
	for _, more := range []string{"permissions", "capabilities", "model", "limits", "_parent"} {
		one := map[string]any{"n": int64(1), more: "rye.execute.*"}
		if _, err := s.c.Map(s.ctx, inThread(parent), ofItems([]map[string]any{one}, 1)); err == nil || !strings.Contains(err.Error(), "is not an input") {
			t.Errorf("%s: %v", more, err)
		}
	}
	set := s.begunSet(ofItems(numbered(0, 1), 1))
	_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: set})
	if err == nil || !strings.Contains(err.Error(), "starts its items alone") {
		t.Errorf("a directive below a set: %v", err)
	}
	meta, err := s.c.Threads.OwnMeta(s.workers(set)[0])
	if s.noError(err); len(meta.Capabilities) > 0 {
		t.Errorf("an entry of a directive without rights has %v", meta.Capabilities)
	}
}

// TestAttackMappedKey: two callers of map_threads give one request_key and other items, and a thread gives the key of another.
// The second caller is refused, and a thread's keys are its own.
func TestAttackMappedKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, true)
	mine := ofItems(numbered(0, 2), 2)
	mine.RequestKey = "key"
	first := s.mapped(s.c, atTerminal, mine)
	theirs := ofItems(numbered(5, 2), 2)
	theirs.RequestKey = "key"
	if _, err := s.c.Map(s.ctx, action.Caller{}, theirs); !errors.Is(err, store.ErrKeyReused) {
		t.Errorf("other items by the same key: %v", err)
	}
	rec := s.row(first.ThreadID)
	if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", RequestKey: rec.RequestKey}); err == nil {
		t.Error("a start by the key of a set was answered")
	}
}

// TestAttackMappedList: a list of a million items, and items that are nested ten thousand deep, are given to map_threads.
// Both are refused before anything starts.
func TestAttackMappedList(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := mapping(t, false)
	many := make([]map[string]any, 1_000_000)
	if _, err := s.c.Map(s.ctx, action.Caller{}, ofItems(many, 1)); err == nil || !strings.Contains(err.Error(), "1000000 entries, and 1000 are the most") {
		t.Errorf("a million: %v", err)
	}
	var deep any = "x"
	for range 20_000 {
		deep = []any{deep}
	}
	if _, err := s.c.Map(s.ctx, action.Caller{}, ofItems([]map[string]any{{"n": deep}}, 1)); err == nil {
		t.Error("a deep item was taken")
	}
	large := numbered(0, 1000)
	s.write("directives/item.md", strings.ReplaceAll(fmt.Sprintf(itemDirective, ""), "integer", "string"))
	for i := range large {
		large[i]["n"] = fmt.Sprint(i, strings.Repeat("x", 10_000))
	}
	if _, err := s.c.Map(s.ctx, action.Caller{}, ofItems(large, 1)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("ten megabytes: %v", err)
	}
	rows, _, err := s.c.Threads.Store.List(context.Background(), store.Filter{})
	if s.noError(err); len(rows) != 0 {
		t.Errorf("%d threads are registered", len(rows))
	}
}
