package tidy_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// talk adds to the transcript of a thread what is worth compressing.
func (s *scene) talk(id thread.ID) {
	s.Helper()
	w, err := s.t.Threads.Finisher.OpenTranscript(id, "")
	s.noError(err)
	for turn := range 300 {
		s.noError(w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: turn + 1}))
		s.noError(w.Checkpoint(turn + 1))
	}
	s.noError(w.Close())
}

// talked is a thread that has ended after many words.
func (s *scene) talked(directive string, parent thread.ID) thread.ID {
	s.Helper()
	id := s.running(directive, parent)
	s.talk(id)
	s.end(id, thread.Completed, 7)
	return id
}

func (s *scene) compressAfter(d time.Duration) {
	s.t.Schedule = func() (tidy.Schedule, error) { return tidy.Schedule{Interval: time.Hour, CompressAfter: d}, nil }
}

// wantForm holds that transcripts are compressed, or plain.
func (s *scene) wantForm(compressed bool, ids ...thread.ID) {
	s.Helper()
	for _, id := range ids {
		dir := folder.Folder(s.folder(id))
		_, plain := os.Lstat(dir.Transcript())
		_, packed := os.Lstat(dir.Compressed())
		if (packed == nil) != compressed || (plain == nil) == compressed {
			s.Errorf("%s: plain %v, compressed %v", id, plain, packed)
		}
	}
}

// TestCompressEnded: the sweep compresses transcripts of what has ended for so long. What
// lives, is short or whose life somebody has stays as it is; all of it verifies, is deleted
// and searched like any other.
func TestCompressEnded(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	old, held, short := s.talked("old", ""), s.talked("held", ""), s.ended("short", "")
	living := s.running("living", "")
	s.talk(living)
	rec, err := s.store.Get(s.ctx, held)
	s.noError(err)
	hold, err := s.t.Threads.Life.Claim(life.Of(rec))
	s.noError(err)
	s.pass(30 * time.Hour) // without a time nothing is compressed
	s.wantForm(false, old)
	s.compressAfter(day)
	recent := s.talked("recent", "")
	s.now = s.now.Add(time.Hour)
	if did := s.sweep(); !strings.Contains(did, "transcripts: compressed 1, ") {
		t.Errorf("did %q", did)
	}
	s.wantForm(true, old)
	s.wantForm(false, held, short, living, recent)
	s.noError(hold.Release())
	s.now = s.now.Add(time.Hour)
	s.sweep()
	s.wantForm(true, held)
	said := s.t.Threads.Records.Of(old).Transcript()
	meta, err := s.t.Threads.Records.Of(old).Meta().Read()
	s.noError(err)
	if report, err := transcript.Verify(said, s.t.Threads.Records.Seal(), meta.Transcript); err != nil || report.SignedBytes != report.Bytes {
		t.Errorf("%+v, %v", report, err)
	}
	s.talk(living)
	s.end(living, thread.Completed, 7)
	s.talk(old) // as who resumes it does
	s.wantForm(false, old)
	s.now = s.now.Add(time.Hour)
	s.sweep()
	s.wantForm(true, old)
	s.delete(old)
	s.wantGone(old)
	s.delete(held)
	s.wantGone(held)
	v, err := s.t.Vacuum(s.ctx)
	if s.noError(err); len(v.Parts) == 0 || v.Parts[len(v.Parts)-1].Name == "transcripts" {
		t.Errorf("a vacuum with nothing to compress: %+v", v)
	}
	s.now = s.now.Add(2 * day)
	if v, err = s.t.Vacuum(s.ctx); err != nil || v.Parts[len(v.Parts)-1].Name != "transcripts" || v.Parts[len(v.Parts)-1].After <= 0 {
		t.Errorf("vacuum %+v, %v", v, err)
	}
	s.wantForm(true, recent, living)
	if did := s.sweepLater(); strings.Contains(did, "transcripts") {
		t.Errorf("with nothing to do it did %q", did)
	}
}

func (s *scene) sweepLater() string {
	s.Helper()
	s.now = s.now.Add(time.Hour)
	return s.sweep()
}
