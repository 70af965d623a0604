package tidy_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFullDisk deletes threads on a disk that becomes full before it, and at each crash
// point. Steps that are done stay done, writes that fail are told, and when there is room
// again all of it goes; no sum has changed. It compresses transcripts on such a disk, and
// adds to compressed ones.
func TestFullDisk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	for _, at := range append([]thread.Crashpoint{never}, tidy.Crashpoints()...) {
		t.Run("full at "+string(at), func(t *testing.T) { deleteOnFullDisk(t, at) })
	}
	t.Run("compress", compressOnFullDisk)
}

// compressOnFullDisk: the disk is full again behind each transcript that was compressed. The
// others stay as they are, and so does a compressed one that somebody would add to.
func compressOnFullDisk(t *testing.T) {
	disk := disktest.Mount(t, t.TempDir(), "8m")
	s := openScene(t, disk.Dir)
	first, second := s.talked("first", ""), s.talked("second", "")
	local, _ := s.t.Threads.Records.(records.Local)
	local.Crashpoints = func(now thread.Crashpoint) {
		if now == records.CrashRemoved {
			disk.Fill()
		}
	}
	s.t.Threads.Records = local
	s.pass(30 * time.Hour)
	s.compressAfter(day)
	s.now = s.now.Add(time.Hour)
	if did, _, err := s.t.Sweep(s.ctx); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(strings.Join(did, "; "), "compressed 1, ") {
		t.Errorf("did %q, %v", did, err)
	}
	s.wantForm(true, first)
	s.wantForm(false, second)
	if w, err := s.t.Threads.Finisher.OpenTranscript(first, ""); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("it was opened to be written: %v, %v", w, err)
	}
	s.wantForm(true, first)
	for _, id := range []thread.ID{first, second} {
		if _, err := transcript.Verify(s.t.Threads.Records.Of(id).Transcript(), s.t.Threads.Records.Seal(), nil); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if drafts, err := filepath.Glob(filepath.Join(s.folder(id), "*.draft")); err != nil || len(drafts) > 0 {
			t.Errorf("left are %q, %v", drafts, err)
		}
	}
	disk.Empty()
	local.Crashpoints = nil
	s.t.Threads.Records = local
	s.talk(first)
	s.wantForm(false, first)
	s.sweepLater()
	s.wantForm(true, first, second)
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
