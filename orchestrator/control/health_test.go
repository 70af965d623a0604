package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

func TestHealth(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 2)
	root, done := s.start("idle", ""), s.start("idle", "")
	s.order(done, "spend 7", "complete")
	s.wait(s.c, WaitAll, done)
	dead := s.start("idle", "")
	s.begin("work", root)
	s.order(root, "spend 0") // it has just recorded something
	s.c.Threads.LeaveChildren()
	s.noError(syscall.Kill(s.puppet(dead).pid, syscall.SIGKILL))
	<-s.puppet(dead).gone
	s.noError(os.MkdirAll(string(s.folder("stray-1")), 0o700))
	s.noError(os.WriteFile(s.folder("stray-1").Lock(thread.NewRun()), nil, 0o600))

	now := testTime
	server := s.controller()
	server.Threads.Now = func() time.Time { return now }
	now = time.Now().Add(health.StuckAfter / 2) // a clock that jumps
	h, err := server.Health.Report(s.ctx, health.Request{}, nil)
	s.noError(err)
	if h.ThreadCount != 4 || h.ActiveDays != 7 || h.Running != 1 || h.Queued != 1 || h.MaxRunning != 2 || len(h.Stuck) != 0 ||
		h.CheckpointCount == 0 || h.DBSizeMB <= 0 || h.OrphanedFolders != 1 || !strings.Contains(h.Next, "reconcile_threads") {
		s.Errorf("health %+v", h)
	}
	s.wantState(thread.Error, dead)
	for _, what := range []string{"databases", "wal", "transcripts", "artifacts", "thread_logs", "renderings"} {
		if size, measured := h.SizesMB[what]; !measured || size < 0 {
			s.Errorf("the size of %s is not told: %v", what, h.SizesMB)
		}
	}
	if h.Growth.Days != 7 || h.SizesMB["databases"] <= 0 || len(h.Advice) != 1 || !strings.HasPrefix(h.Advice[0], "reconcile_threads with apply: 1 folder") {
		s.Errorf("sizes %v, growth %+v, advice %q", h.SizesMB, h.Growth, h.Advice)
	}

	now = testTime
	if h, err = server.Health.Report(s.ctx, health.Request{ActiveDays: 1}, nil); err != nil || h.SpendToday != 7 || h.OrphanedFolders != 0 {
		s.Errorf("health %+v, %v", h, err) // the stray folder is in the future, and so just made
	}
	now = time.Now().Add(2 * health.StuckAfter)
	if h, err = server.Health.Report(s.ctx, health.Request{}, nil); err != nil || !slices.Equal(h.Stuck, []thread.ID{root}) {
		s.Errorf("stuck %v, %v", h.Stuck, err)
	}
}

// TestReconcile finds each kind of disagreement that files and ledger can have
// with the registry, and nothing else.
func TestReconcile(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	gone, unreadable, swapped, sound := s.start("work", root), s.start("work", root), s.start("work", root), s.start("work", root)
	for _, id := range []thread.ID{gone, unreadable, swapped, sound} {
		s.order(id, "complete")
		<-s.puppet(id).gone
	}
	s.noError(os.RemoveAll(string(s.folder(gone))))
	s.noError(os.WriteFile(s.folder(unreadable).Meta(), []byte("{"), 0o600))
	s.noError(os.WriteFile(s.folder(swapped).Meta(), []byte(s.read(s.folder(sound).Meta())), 0o600))
	for _, id := range []thread.ID{"stray-1", "leftover-1"} {
		s.noError(s.folder(id).Make())
		s.noError(os.WriteFile(s.folder(id).Lock(thread.NewRun()), nil, 0o600))
	}
	s.noError(os.WriteFile(s.folder("stray-1").Transcript(), nil, 0o600))
	s.noError(os.Symlink("stray-1", filepath.Join(filepath.Dir(string(s.folder("stray-1"))), "linked-1")))
	s.noError(s.c.Threads.Store.OpenRoot(s.ctx, "nobody-1", 5, testTime))

	server := s.controller()
	if r, err := server.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil); err != nil || len(r.Findings) != 5 {
		s.Errorf("what may be on its way: %+v, %v", r.Findings, err)
	}
	server.Threads.Now = func() time.Time { return time.Now().Add(time.Hour) }
	r, err := server.Health.Reconcile(s.ctx, health.ReconcileInput{}, nil)
	s.noError(err)
	var got []string
	for _, f := range r.Findings {
		got = append(got, fmt.Sprintf("%s %s", f.ThreadID, f.Kind))
		if f.Detail == "" || f.Mend == "" {
			s.Errorf("finding %+v", f)
		}
	}
	want := []string{
		"leftover-1 " + "lock_stale", "linked-1 " + "folder_linked", "nobody-1 " + "reservation_without_thread", "stray-1 " + "meta_missing",
		string(gone) + " " + "folder_missing", string(unreadable) + " " + "meta_unreadable", string(swapped) + " " + "meta_copied",
	}
	if !slices.Equal(got, want) || r.Success || r.Threads != 5 || r.Next == "" {
		s.Errorf("found %q of %d threads, want %q", got, r.Threads, want)
	}
}

// TestClockJumps starts, ends and lists threads while the clock jumps an hour
// back and forth.
func TestClockJumps(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 2)
	now := testTime
	s.c.Threads.Now = func() time.Time { return now }
	root := s.start("idle", "")
	var ids []thread.ID
	for i, jump := range []time.Duration{-time.Hour, time.Hour, -time.Hour, 0} {
		now = testTime.Add(jump)
		started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Parent: root})
		s.noError(err)
		if started.Queued != (i > 0) {
			s.Errorf("started %+v", started)
		}
		ids = append(ids, started.ThreadID)
	}
	for _, id := range ids { // in the order they came
		s.order(id, "claim")
		now = testTime.Add(-time.Hour)
		for _, id := range append(ids, root) {
			status, err := s.c.View.Status(s.ctx, id)
			if err != nil || status.ElapsedSeconds < 0 || status.Status == thread.Error {
				s.Errorf("status %+v, %v", status, err)
			}
		}
		s.order(id, "complete")
		if r := s.wait(s.c, WaitAll, id); r.ElapsedSeconds < 0 || !r.Success {
			s.Errorf("waited %+v", r)
		}
	}
	stopped, err := s.c.Stop.Cancel(s.ctx, root)
	if err != nil || !stopped.Success || len(stopped.Receipts) != 5 {
		s.Errorf("stopped %+v, %v", stopped, err)
	}
}

// TestUnfitFolder refuses a start whose folder could not be used, and leaves
// nothing behind.
func TestUnfitFolder(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/away/work.md", fmt.Sprintf(directive, "work", "", ""))
	s.noError(os.Symlink(s.project, string(s.folder("away"))))
	_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "away/work"})
	if code(err) != "bad_arguments" || !strings.Contains(err.Error(), thread.ErrUnfit.Error()) {
		s.Errorf("started below a link: %v", err)
	}
	if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 0 {
		s.Errorf("listed %+v, %v", list, err)
	}
	if found, err := filepath.Glob(filepath.Join(s.project, "work-*")); err != nil || len(found) != 0 {
		s.Errorf("written through the link: %v, %v", found, err)
	}
}
