package control

import (
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestDeleteWithForce stops what lives, children before parents, and then deletes all of
// it. Without force nothing of it goes, and whoever waits for it is told that it was
// deleted or how it ended.
func TestDeleteWithForce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	done := s.start("work", root)
	s.order(done, "spend 7", "complete")
	<-s.puppet(done).gone
	for _, id := range []thread.ID{root, child} {
		_, err := s.c.Tidy.Delete(s.ctx, tidy.DeleteRequest{ThreadID: id, Agreed: true})
		if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != tool.CodeConflict || !strings.Contains(f.Hint, "force") {
			t.Errorf("%s: %v", id, err)
		}
	}
	s.wantState(thread.Running, root, child)
	told, err := s.c.Tidy.Delete(s.ctx, tidy.DeleteRequest{ThreadID: child, Agreed: true, Force: true})
	s.noError(err)
	if told.Threads != 1 || told.Left != 0 {
		t.Errorf("told %+v", told)
	}
	<-s.puppet(child).gone
	s.wantState(thread.Running, root)

	waited := make(chan error, 1)
	go func() {
		_, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{root}, Mode: WaitAll})
		waited <- err
	}()
	told, err = s.c.Tidy.Delete(s.ctx, tidy.DeleteRequest{ThreadID: root, Agreed: true, Force: true})
	s.noError(err)
	if told.Threads != 2 || len(told.Living) > 0 {
		t.Errorf("told %+v", told)
	}
	<-s.puppet(root).gone
	if err := <-waited; err != nil && !strings.Contains(err.Error(), "was deleted") {
		t.Errorf("who waited: %v", err)
	}
	if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 0 {
		t.Errorf("left %+v, %v", list, err)
	}
	s.wantDeleted(root, child, done)
}

// wantDeleted holds that whatever is asked about deleted threads says so.
func (s *scene) wantDeleted(ids ...thread.ID) {
	s.Helper()
	for _, id := range ids {
		for name, ask := range map[string]func() error{
			"status": func() error { _, err := s.c.View.Status(s.ctx, id); return err },
			"read":   func() error { _, err := s.c.View.ReadTranscript(s.ctx, view.TranscriptInput{ThreadID: id}); return err },
			"chain":  func() error { _, err := s.c.View.GetChain(s.ctx, id); return err },
			"wait": func() error {
				_, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{id}, Mode: WaitAll})
				return err
			},
			"resume": func() error {
				_, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on"})
				return err
			},
			"cancel": func() error { _, err := s.c.Stop.Cancel(s.ctx, id); return err },
			"start below": func() error {
				_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: id})
				return err
			},
		} {
			if err := ask(); err == nil || !strings.Contains(err.Error(), "thread "+string(id)+" was deleted on ") {
				s.Errorf("%s of %s: %v", name, id, err)
			}
		}
	}
}
