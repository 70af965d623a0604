package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestReplayNote: a replay tells of a thread that began with what another had said that
// the text of its directive was not compared.
func TestReplayNote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meta thread.Meta
		want string
	}{
		"of its own": {thread.Meta{}, "same    work-9: 1 turn, 0 tool calls\n"},
		"a copy": {
			thread.Meta{Continuation: &thread.Continuation{}, ForkedFrom: &thread.Fork{ThreadID: "work-1"}},
			"it began with the conversation of work-1, as recorded",
		},
		"a successor": {
			thread.Meta{Continuation: &thread.Continuation{}, ContinuationOf: "work-2"}, "it began with the conversation of work-2, as recorded",
		},
	} {
		report := threadReplay{ThreadID: "work-9", Verdict: verdictSame, Turns: 1, Note: notCompared(c.meta)}
		if text := report.text(); !strings.Contains(text, c.want) || (report.Note == "") != (c.meta.Continuation == nil) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A test whose answers are the same still says what of a continued thread was not compared.
func TestNoteOfTest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := writeTest(System{Stdout: &out}, recordedTest{Name: "work", Verdict: verdictSame, Threads: []threadReplay{
		{ThreadID: "work-1", Verdict: verdictSame}, {ThreadID: "work-2", Verdict: verdictSame, Note: "it began elsewhere"},
	}})
	if err != nil || !strings.Contains(out.String(), "it began elsewhere") || strings.Contains(out.String(), "work-1") {
		t.Errorf("%v\n%s", err, &out)
	}
}
