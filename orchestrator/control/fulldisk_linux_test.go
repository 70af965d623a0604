package control

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// onDisk is a scene on a small disk of its own.
func onDisk(t *testing.T) (*scene, *disktest.Disk) {
	t.Helper()
	dir, err := os.MkdirTemp("", "control") //nolint:usetesting // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	disk := disktest.Mount(t, dir, "16m")
	return newSceneIn(t, dir), disk
}

// fullAt lets the disk become full at a crash point, with no room in the write-ahead logs
// that could be used again.
func (s *scene) fullAt(at thread.Crashpoint, disk *disktest.Disk) (came *atomic.Bool) {
	s.Helper()
	_, err := s.c.Tidy.Vacuum(s.ctx)
	s.noError(err)
	came = new(atomic.Bool)
	s.c.Threads.Crashpoints = func(now thread.Crashpoint) {
		if now == at && came.CompareAndSwap(false, true) {
			disk.Fill()
		}
	}
	s.c.Threads.Finisher.Crashpoints = s.c.Threads.Crashpoints
	return came
}

// wantDiskFull fails the test unless a failure says that the disk is full.
func (s *scene) wantDiskFull(err error) {
	s.Helper()
	if err != nil && code(err) != tool.CodeDiskFull {
		s.Errorf("on a full disk: %v", err)
	}
}

// wantNothingHeld fails the test unless nothing holds money and nobody works, once all
// that can be done with room again is done.
func (s *scene) wantNothingHeld() {
	s.Helper()
	_, err := s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	active, err := s.c.Threads.Store.Active(s.ctx)
	if s.noError(err); len(active) > 0 {
		s.Errorf("budgets are held: %+v", active)
	}
	working, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{States: unfinished.States})
	if s.noError(err); len(working) > 0 {
		s.Errorf("at work: %+v", working)
	}
}

// TestFullDisk forks and maps on a disk that becomes full at some steps, and in a soak at
// each. The caller is told so, the source is as it was, and when there is room again
// nothing is held and the same call does all of it.
func TestFullDisk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	for i, walk := range forkWalks("", "") {
		points := sampled(walk.points)
		if walk.how == "copy-to-rest" { // each step of its end
			points = slices.DeleteFunc(slices.Clone(walk.points), func(at thread.Crashpoint) bool { return at == scheduler.CrashClaimed })
		}
		for _, at := range points {
			t.Run(fmt.Sprintf("%s, full at %s", walk.how, at), func(t *testing.T) {
				t.Parallel()
				forkOnFullDisk(t, i, at)
			})
		}
	}
	for _, at := range sampled(mapSteps()) {
		t.Run(fmt.Sprintf("map, full at %s", at), func(t *testing.T) {
			t.Parallel()
			mapOnFullDisk(t, at)
		})
	}
}

func forkOnFullDisk(t *testing.T, how int, at thread.Crashpoint) {
	s, disk := onDisk(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello", "complete")
	s.gone(first)
	s.verify(first)
	left, walk := s.leaves(first), forkWalks(first, root)[how]
	came := s.fullAt(at, disk)
	got, err := s.c.Continue.Fork(s.ctx, walk.request)
	if !came.Load() {
		t.Fatalf("nobody came to %s", at)
	}
	s.wantDiskFull(err)
	disk.Empty()
	s.order(root, "complete")
	s.gone(root)
	if err == nil && got.Run != nil {
		s.order(got.ThreadID, "claim", "complete")
		s.gone(got.ThreadID)
	}
	s.wantNothingHeld()
	s.wantToldOfCopy(got, err, first)
	if now := s.leaves(first); !reflect.DeepEqual(now, left) {
		t.Errorf("the source was\n%v, and is\n%v", left, now)
	}
	walk.request.From = "" // which has ended
	again := s.fork(walk.request)
	if again.Turns != 1 || again.ThreadID == got.ThreadID {
		t.Errorf("again %+v", again)
	}
	if again.Run != nil {
		s.order(again.ThreadID, "complete")
		s.gone(again.ThreadID)
	}
	if v := s.verify(again.ThreadID); !v.Verified {
		t.Errorf("the copy %+v", v)
	}
}

// wantToldOfCopy fails the test unless a copy that stands as completed is one that its
// caller was told of, whole, and no other.
func (s *scene) wantToldOfCopy(got continuation.Forked, err error, source thread.ID) {
	s.Helper()
	completed, _, lerr := s.c.Threads.Store.List(s.ctx, store.Filter{States: []thread.State{thread.Completed}})
	s.noError(lerr)
	for _, rec := range completed {
		from := s.meta(rec.ThreadID).ForkedFrom
		if from == nil || from.ThreadID != source {
			continue
		}
		if err != nil || rec.ThreadID != got.ThreadID {
			s.Errorf("%s stands as completed; its caller was told %+v, %v", rec.ThreadID, got, err)
		}
		if v := s.verify(rec.ThreadID); !v.Verified {
			s.Errorf("the copy is not whole: %+v", v)
		}
	}
	if err == nil {
		s.wantState(thread.Completed, got.ThreadID)
	}
}

func mapOnFullDisk(t *testing.T, at thread.Crashpoint) {
	s, disk := onDisk(t)
	s.write("directives/item.md", fmt.Sprintf(itemDirective, ""))
	s.env = nil // puppets complete at once
	s.c = s.controller()
	came := s.fullAt(at, disk)
	req := ofItems(numbered(0, 3), 2)
	req.Async = true
	_, err := s.c.Map(s.ctx, atTerminal, req)
	if !came.Load() {
		t.Fatalf("nobody came to %s", at)
	}
	s.wantDiskFull(err)
	disk.Empty()
	req.Async = false
	a := s.mapped(s.c, atTerminal, req)
	for range 3 {
		if !a.Success { // entries that failed for want of room run again
			a = s.mapped(s.c, atTerminal, req)
		}
	}
	if !a.Success || a.Counts.Completed != 3 {
		t.Errorf("answer %+v", a)
	}
	s.wantRuns(3)
	s.wantNothingHeld()
}
