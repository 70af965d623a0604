package control

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// byHook starts a thread as an action of a hook of its parent.
func (s *scene) byHook(directive string, parent thread.ID, h action.HookCall) (view.Started, error) {
	s.Helper()
	return s.c.Start(s.ctx, action.Caller{Hook: &h}, action.StartRequest{Directive: directive, Parent: parent})
}

// TestFiringIsInherited: hooks that have started a thread are known to all below.
func TestFiringIsInherited(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child, err := s.byHook("idle", root, action.HookCall{Firing: []string{"a", "b"}})
	s.noError(err)
	s.order(child.ThreadID, "claim")
	below := s.start("idle", child.ThreadID)
	again, err := s.byHook("work", below, action.HookCall{Firing: []string{"a", "b", "c"}})
	s.noError(err)
	for id, want := range map[thread.ID][]string{
		root: nil, child.ThreadID: {"a", "b"}, below: {"a", "b"}, again.ThreadID: {"a", "b", "c"},
	} {
		meta, err := s.folder(id).ReadMeta(s.c.Threads.Records.Seal())
		s.noError(err)
		if !slices.Equal(meta.Firing, want) {
			s.Errorf("%s must not fire %q, want %q", id, meta.Firing, want)
		}
	}
}

// TestExemptHook: a hook of the program may start what the thread may not, and
// what it starts may do no more than the thread.
func TestExemptHook(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/meek.md", fmt.Sprintf(directive, "meek", "", ""))
	meek := s.start("meek", "")
	if _, err := s.byHook("work", meek, action.HookCall{}); code(err) != tool.CodePermissionDenied {
		s.Errorf("a hook of the project: %v", err)
	}
	started, err := s.byHook("work", meek, action.HookCall{Exempt: true})
	s.noError(err)
	meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	if len(meta.Ceiling) != 1 || !slices.Equal(meta.Ceiling[0], []string{"rye.execute.tool.rye.file-system.*"}) {
		s.Errorf("ceiling %q", meta.Ceiling)
	}
}

// TestLateStart: the last hooks of a thread that has ended start a child, which is
// paid out of what the thread had left, and counts everywhere once.
func TestLateStart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	ended := s.start("work", root) // holds 0.01
	late := action.HookCall{Ended: true}
	if _, err := s.byHook("work", ended, late); code(err) != tool.CodeParentGone {
		s.Errorf("a thread that has not ended: %v", err)
	}
	s.order(ended, "spend 4000", "complete")
	s.wait(s.c, WaitAll, ended)
	if _, err := s.byHook("work", ended, action.HookCall{}); code(err) != tool.CodeParentGone {
		s.Errorf("a hook before the end: %v", err)
	}
	s.write("directives/dear.md", fmt.Sprintf(directive, "dear", `<limits spend="0.007" />`, ""))
	if _, err := s.byHook("dear", ended, late); code(err) != tool.CodeBudgetExhausted {
		s.Errorf("more than was left: %v", err)
	}
	child, err := s.byHook("idle", ended, late) // which asks for nothing, and gets half of 0.006
	s.noError(err)
	s.order(child.ThreadID, "claim", "spend 1000")
	budget, err := s.c.Threads.Store.Budget(s.ctx, child.ThreadID)
	if err != nil || budget.MaxSpend != 3000 || budget.ParentID != ended {
		s.Errorf("budget %+v, %v", budget, err)
	}
	s.order(child.ThreadID, "complete")
	s.wait(s.c, WaitAll, child.ThreadID)
	s.order(root, "complete")
	s.wait(s.c, WaitAll, root)
	s.wantState(thread.Completed, root, ended, child.ThreadID)
	if row := s.row(ended); row.SpawnCount != 2 { // the dear one was registered
		s.Errorf("%d spawns", row.SpawnCount)
	}
	row, tree, err := s.c.Threads.Store.Tree(s.ctx, root)
	if want := (store.TreeSpend{Actual: 5000, Threads: 3}); err != nil || tree != want || row.Actual != 5000 {
		s.Errorf("tree %+v of %+v, %v", tree, row, err)
	}
}

// TestLateStartBelowCancel: nothing is started below a thread that was asked to
// stop, also by one that had ended before.
func TestLateStartBelowCancel(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	ended := s.start("idle", root)
	s.order(ended, "complete")
	s.wait(s.c, WaitAll, ended)
	_, err := s.c.Stop.Cancel(s.ctx, root)
	s.noError(err)
	for _, parent := range []thread.ID{root, ended} {
		if _, err := s.byHook("work", parent, action.HookCall{Ended: true}); code(err) != tool.CodeParentGone {
			s.Errorf("below %s: %v", parent, err)
		}
	}
}
