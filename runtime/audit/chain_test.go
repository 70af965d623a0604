package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// chain is threads of which one continues the other.
type chain struct {
	*scene
	handedOver, after thread.Record // by a handoff; the second has not begun
	resumed, again    thread.Record // by a resume
}

func newChain(t *testing.T) *chain {
	t.Helper()
	c := &chain{scene: newScene(t, newKey(t, 1))}
	c.handedOver = c.start("long")
	w := c.play(c.handedOver)
	c.after = c.seeded(c.handedOver, thread.ViaHandoff)
	c.end(c.handedOver, w, thread.Outcome{
		State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: c.after.ThreadID, TrailingTurns: 1},
	})
	c.resumed = c.whole("short")
	c.again = c.seeded(c.resumed, thread.ViaResume)
	c.must(c.store.Link(t.Context(), c.resumed.ThreadID, c.again.ThreadID, now()))
	w, err := c.finisher().OpenTranscript(c.resumed.ThreadID, "")
	c.must(err)
	c.must(w.Add(transcript.Resumed(c.again.ThreadID, "short", "go on", turns)))
	c.must(w.Close())
	for _, rec := range []*thread.Record{&c.handedOver, &c.after, &c.resumed, &c.again} {
		*rec, err = c.store.Get(t.Context(), rec.ThreadID)
		c.must(err)
	}
	return c
}

// seeded registers a thread that continues another and writes what it begins with.
func (s *scene) seeded(before thread.Record, via thread.Via) thread.Record {
	s.Helper()
	rec, _, err := store.Register(s.Context(), s.store, store.NewThread{
		Kind: before.Kind, Directive: before.Directive, ContinuationOf: before.ThreadID, Handoff: via == thread.ViaHandoff, Now: now(),
	}, func(id thread.ID) error { return folder.Of(s.stateDir, id).Make() })
	s.must(err)
	w, err := s.finisher().OpenTranscript(rec.ThreadID, "")
	s.must(err)
	s.must(w.Seed(transcript.ThreadContinued{PreviousThreadID: before.ThreadID, Via: via},
		[]llm.Message{llm.Text(llm.User, "Where the work stands"), llm.Text(llm.Assistant, "Answer 3.")}))
	s.must(w.Close())
	s.must(s.folder(rec).WriteMeta(thread.Meta{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Directive: rec.Directive, Status: rec.Status, CreatedAt: now(),
		ContinuationOf: before.ThreadID, ChainRootID: before.ThreadID,
	}, placetest.Seal(s.key)))
	return rec
}

// TestChains: a thread that has handed over verifies, one that begins with what it
// was given does too, and so does one that was resumed after it had ended.
func TestChains(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	for name, rec := range map[string]thread.Record{
		"handed over": c.handedOver, "continues": c.after, "resumed": c.resumed, "continues what was resumed": c.again,
	} {
		report := c.audit(c.subject(rec))
		if !report.Good() || len(report.Warnings) > 0 || report.Transcript.UnsignedBytes() != 0 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}

// TestChainAttacks does to chains what can be done without the key. A change that
// a crash can leave as well is a warning.
func TestChainAttacks(t *testing.T) {
	t.Parallel()
	const stranger = "stranger-1772357400"
	c := newChain(t)
	whole := c.read(c.folder(c.resumed).Transcript())
	for _, tt := range []struct {
		name    string
		victim  thread.Record
		do      func(s *Subject)
		file    string // in which damage is found
		warning string
	}{
		{"made to continue another", c.after, func(s *Subject) { s.Row.ContinuationOf = stranger }, metaFile, ""},
		{"put into another chain", c.after, func(s *Subject) { s.Row.ChainRootID = stranger }, metaFile, ""},
		{"made to continue none", c.again, func(s *Subject) { s.Row.ContinuationOf, s.Row.ChainRootID = "", "" }, metaFile, ""},
		{"a thread made to continue one", c.resumed, func(s *Subject) { s.Row.ContinuationOf = stranger }, metaFile, ""},
		{"handed over to a stranger", c.handedOver, func(s *Subject) { s.Row.ContinuationThreadID = stranger }, registryFile, ""},
		{"resumed by a stranger", c.resumed, func(s *Subject) { s.Row.ContinuationThreadID = stranger }, registryFile, ""},
		{"successor forgotten", c.handedOver, func(s *Subject) { s.Row.ContinuationThreadID = "" }, "", "does not know"},
		{"resume forgotten", c.resumed, func(s *Subject) { s.Row.ContinuationThreadID = "" }, "", "does not know"},
		{"resume cut off", c.resumed, func(s *Subject) {
			lines := strings.SplitAfter(whole, "\n")
			c.write(c.folder(s.Row).Transcript(), strings.Join(lines[:len(lines)-3], ""))
		}, "", "does not say"},
		{"resume edited", c.resumed, func(s *Subject) {
			c.edit(c.folder(s.Row).Transcript(), `"new_thread_id":"`+string(c.again.ThreadID), `"new_thread_id":"`+stranger)
		}, transcriptFile, ""},
		{"seed edited", c.after, func(s *Subject) { c.edit(c.folder(s.Row).Transcript(), "Answer 3.", "Answer 9.") }, transcriptFile, ""},
		{"seed of another", c.again, func(s *Subject) {
			c.write(c.folder(s.Row).Transcript(), c.read(c.folder(c.handedOver).Transcript()))
		}, transcriptFile, ""},
	} {
		subject := c.subject(tt.victim)
		before := c.read(c.folder(subject.Row).Transcript())
		tt.do(&subject)
		report := c.audit(subject)
		c.write(c.folder(subject.Row).Transcript(), before)
		found := slices.ContainsFunc(report.Findings, func(f Finding) bool { return f.File == tt.file })
		if found != (tt.file != "") || len(report.Findings) > 1 {
			t.Errorf("%s: damage of %q is not among %+v", tt.name, tt.file, report.Findings)
		}
		if said := strings.Join(report.Warnings, "\n"); !strings.Contains(said, tt.warning) || (said == "") != (tt.warning == "") {
			t.Errorf("%s: the warnings are %q, want %q", tt.name, said, tt.warning)
		}
	}
}
