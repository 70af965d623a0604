package control

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// compress compresses the transcript of a thread that has ended.
func (s *scene) compress(id thread.ID) {
	s.Helper()
	before, after, err := s.c.Threads.Records.Of(id).Whole().Compress()
	s.noError(err)
	if _, err := os.Lstat(s.folder(id).Transcript()); !errors.Is(err, fs.ErrNotExist) || after == 0 || after >= before {
		s.Fatalf("from %d to %d bytes, the plain transcript: %v", before, after, err)
	}
}

// TestCompressedThread: a thread whose transcript was compressed is checked, also by a
// receipt and a copy of the compressed file alone, forked and resumed as any other.
func TestCompressedThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	id := s.start("work", "")
	s.order(id, "say "+strings.Repeat("a long hello ", 2000), "complete")
	s.gone(id)
	sealed, err := s.c.Verify.Receipt(s.ctx, id)
	s.noError(err)
	receipt, key, err := audit.OpenReceipt(sealed)
	s.noError(err)
	s.compress(id)
	if v := s.verify(id); !v.Verified {
		t.Errorf("compressed %+v", v)
	}
	copied := records.Copy(s.folder(id).Compressed())
	if report, err := receipt.CheckTranscript(copied, key); err != nil || report.Turns != 1 {
		t.Errorf("the compressed copy %+v, %v", report, err)
	}
	forked := s.fork(continuation.ForkRequest{ThreadID: id})
	if v := s.verify(forked.ThreadID); !v.Verified || forked.Turns != 1 {
		t.Errorf("forked %+v, %+v", forked, v)
	}
	if _, err := os.Lstat(s.folder(id).Compressed()); err != nil {
		t.Errorf("a fork has changed its source: %v", err)
	}
	resumed := s.resume(id)
	if resumed.ReconstructedTurns != 1 {
		t.Errorf("resumed %+v", resumed)
	}
	s.order(resumed.NewThreadID, "complete")
	s.gone(resumed.NewThreadID)
	if v := s.verify(id); !v.Verified || !strings.Contains(s.read(s.folder(id).Transcript()), `"message_preview":"go on"`) {
		t.Errorf("the resumed thread: %+v", v)
	}
	s.compress(id) // with the line behind the end
	if report, err := receipt.CheckTranscript(copied, key); err != nil || report.Turns != 1 {
		t.Errorf("compressed again %+v, %v", report, err)
	}
	if r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true}, nil); err != nil || !r.Success {
		t.Errorf("%+v, %v", r.Findings, err)
	}
	packed := s.read(s.folder(id).Compressed())
	s.noError(os.WriteFile(s.folder(id).Compressed(), []byte(packed[:len(packed)/2]), 0o600))
	if _, err := receipt.CheckTranscript(copied, key); !errors.Is(err, records.ErrDamaged) {
		t.Errorf("cut off: %v", err)
	}
}
