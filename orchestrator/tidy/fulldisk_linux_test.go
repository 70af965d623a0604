package tidy_test

import (
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFullDisk deletes threads on a disk that becomes full before it, and at each crash
// point. What is done is done, what cannot be written is said, and when there is room
// again all of it goes; no sum has changed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	for _, at := range append([]thread.Crashpoint{never}, tidy.Crashpoints()...) {
		t.Run("full at "+string(at), func(t *testing.T) { deleteOnFullDisk(t, at) })
	}
}

func deleteOnFullDisk(t *testing.T, at thread.Crashpoint) {
	disk := disktest.Mount(t, t.TempDir(), "8m")
	s := openScene(t, disk.Dir)
	root := s.running("root", "")
	top := s.running("top", root)
	below := s.ended("below", top)
	s.end(top, thread.Completed, 7)
	other := s.ended("other", "")
	if _, err := s.t.Vacuum(s.ctx); err != nil { // the log has no room left that could be used again
		t.Fatal(err)
	}
	var once sync.Once
	s.t.Threads.Crashpoints = func(now thread.Crashpoint) {
		if now == at {
			once.Do(disk.Fill)
		}
	}
	if at == never {
		disk.Fill()
	}
	told, err := s.t.Delete(s.ctx, tidy.DeleteRequest{ThreadID: top, Agreed: true})
	t.Logf("told %+v, %v", told, err)
	if err != nil && codeOf(err) != tool.CodeDiskFull {
		t.Errorf("with a full disk: %v", err)
	}
	if at == never {
		if err == nil {
			t.Errorf("told %+v", told)
		}
		disk.Empty()
		s.wantWhole(top, below, other)
		return
	}
	if _, err := s.store.Get(s.ctx, top); err == nil {
		t.Error("the thread is there")
	}
	disk.Empty()
	_, _, err = s.t.Sweep(s.ctx)
	s.noError(err)
	s.wantGone(top, below)
	s.wantWhole(other)
	s.wantSpent(root, 14, 21)
}
