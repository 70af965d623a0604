package audit

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// TestChains: a thread that has handed over verifies, one that begins with what it
// was given does too, and so does one that was resumed after it had ended.
func TestChains(t *testing.T) {
	t.Parallel()
	s := newScene(t, newKey(t, 1))
	before := s.start("before")
	w := s.play(before)
	after, _, err := s.store.Register(t.Context(), store.NewThread{
		Kind: thread.KindDirective, Directive: "before", ContinuationOf: before.ThreadID, Handoff: true, Now: now(),
	}, func(id thread.ID) error { return folder.Of(s.stateDir, id).Make() })
	s.must(err)
	seeded, err := s.finisher().OpenTranscript(after.ThreadID)
	s.must(err)
	s.must(seeded.Seed(transcript.ThreadContinued{PreviousThreadID: before.ThreadID, Via: thread.ViaHandoff},
		[]llm.Message{llm.Text(llm.User, "Where the work stands"), llm.Text(llm.Assistant, "Answer 3.")}))
	s.must(seeded.Close())
	s.must(s.folder(after).WriteMeta(thread.Meta{
		ThreadID: after.ThreadID, Kind: after.Kind, Directive: after.Directive, Status: after.Status, CreatedAt: now(),
		ContinuationOf: before.ThreadID,
	}, s.key))
	before = s.end(before, w, thread.Outcome{
		State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: after.ThreadID, TrailingTurns: 1},
	})
	resumed := s.whole("resumed")
	w, err = s.finisher().OpenTranscript(resumed.ThreadID)
	s.must(err)
	s.must(w.Add(transcript.Resumed("resumed-2", "resumed", "go on", turns)))
	s.must(w.Close())
	for name, rec := range map[string]thread.Record{"handed over": before, "resumed": resumed, "carries on": after} {
		rec, err := s.store.Get(t.Context(), rec.ThreadID)
		s.must(err)
		report := s.audit(s.subject(rec))
		if !report.Good() || len(report.Warnings) > 0 || report.Transcript.UnsignedBytes() != 0 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
