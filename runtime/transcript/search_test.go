package transcript

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func search(t testing.TB, path, query string, isRegexp bool, most int) []Hit {
	t.Helper()
	p, err := NewPattern(query, isRegexp)
	must(t, err)
	hits, err := Search(t.Context(), records.File(path), p, most)
	must(t, err)
	return hits
}

// places are the hits in short.
func places(hits []Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, fmt.Sprintf("%d %s", h.Line, h.Type))
	}
	return out
}

// searched is a transcript of a thread that continues another, was broken off in
// its second turn, and has a line that is no event.
func searched(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	w := open(t, path, nil)
	given := []llm.Message{llm.Text(llm.User, "Where the work stands: look here"), llm.Text(llm.Assistant, "I look")}
	must(t, w.Seed(ThreadContinued{PreviousThreadID: "test/before-1", Via: thread.ViaHandoff}, given)) // lines 1 to 4
	must(t, w.Append(thread.EventCognitionIn, CognitionIn{Role: llm.User, Blocks: Blocks{{Type: llm.TextBlock, Text: "Go on and look"}}}))
	must(t, w.Close())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("look, no event\n") // line 6
	must(t, errors.Join(err, f.Close()))
	w = open(t, path, nil)
	writeTurn(t, w, 1) // lines 7 to 10: token_delta, cognition_out, tool_call_start, tool_call_result
	must(t, w.Checkpoint(1))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "It broke in the mid"})) // line 12
	must(t, w.Append(thread.EventHookFired, HookFired{HookID: "h", Result: "while it spoke"}))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "dle of a LOOK"})) // line 14
	must(t, w.Append(thread.EventRetry, Retry{Reason: "stalled: error then timeout"}))
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "Again"}))
	_, err = w.Finish(thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "died", Message: "no look any more"}}, thread.Cost{})
	must(t, err)
	must(t, w.Close())
	return path
}

func TestSearch(t *testing.T) {
	t.Parallel()
	path := searched(t)
	for _, tt := range []struct {
		query    string
		isRegexp bool
		most     int
		want     []string
	}{
		{"look", false, 50, []string{"5 cognition_in", "8 cognition_out", "12 token_delta", "17 thread_error"}},
		{"look", true, 50, []string{"5 cognition_in", "8 cognition_out", "17 thread_error"}},
		{"look", false, 2, []string{"5 cognition_in", "8 cognition_out"}},
		{"middle of", false, 50, []string{"12 token_delta"}},
		{"again", false, 50, []string{"16 token_delta"}},
		{"Again|no look", true, 50, []string{"16 token_delta", "17 thread_error"}},
		{"error.*timeout", true, 50, []string{"15 retry"}},
		{"error.*timeout", false, 50, []string{}},
		{"a.txt", false, 50, []string{"10 tool_call_result"}},
		{`^a\.txt$`, true, 50, []string{}}, // it ends with a newline
		{`(?m)^a\.txt$`, true, 50, []string{"10 tool_call_result"}},
		{"test/before-1", false, 50, []string{"1 thread_continued"}},
		{"rye_bash", false, 50, []string{"8 cognition_out"}},
		{"^ls$", true, 50, []string{"8 cognition_out"}}, // and not once more where the call begins
		{"tool_call_id", false, 50, []string{}},
		{"no event", false, 50, []string{}},
		{"look", false, 0, []string{}},
	} {
		if got := places(search(t, path, tt.query, tt.isRegexp, tt.most)); !slices.Equal(got, tt.want) {
			t.Errorf("%q (regexp %t, %d): got %q, want %q", tt.query, tt.isRegexp, tt.most, got, tt.want)
		}
	}
}

// TestSearchWhileItIsWritten: what streams is found, and the torn line behind it
// does not hinder.
func TestSearchWhileItIsWritten(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Delta(1, llm.Delta{Type: llm.ToolUseBlock, Text: "rye_bash"}))
	must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "halfway"}))
	must(t, w.Close())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"torn halfway`)
	must(t, errors.Join(err, f.Close()))
	if got := places(search(t, path, "halfway", false, 9)); !slices.Equal(got, []string{"2 token_delta"}) {
		t.Errorf("got %q", got)
	}
	if got := search(t, path, "rye_bash", false, 9); len(got) > 0 {
		t.Errorf("the name of a tool: %+v", got)
	}
}

func TestSearchStops(t *testing.T) {
	t.Parallel()
	p, err := NewPattern("x", false)
	must(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := Search(ctx, records.File(searched(t)), p, 9); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if _, err := Search(t.Context(), records.File(newPath(t)), p, 9); !os.IsNotExist(err) {
		t.Errorf("missing file: %v", err)
	}
}

func TestNewPatternRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		query    string
		isRegexp bool
		ok       bool
	}{
		"nothing":             {"", false, false},
		"longest text":        {strings.Repeat("a", maxPatternBytes), false, true},
		"too long":            {strings.Repeat("a", maxPatternBytes+1), false, false},
		"no expression":       {"a(", true, false},
		"the same as text":    {"a(", false, true},
		"repeats":             {"(a|b){100}c*", true, true},
		"repeats too much":    {"((abcdefghij){100}){10}", true, false},
		"repeats beyond RE2":  {"a{1001}", true, false},
		"not one of RE2":      {`(a)\1`, true, false},
		"matches the nothing": {"x*", true, true},
	} {
		if _, err := NewPattern(tt.query, tt.isRegexp); (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrBadPattern) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExcerpt: an excerpt is one bounded line of valid text that shows the
// beginning of what was found.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		around := rapid.StringMatching(`[a-zé\n 語]{0,300}`)
		before, after := around.Draw(rt, "before"), around.Draw(rt, "after")
		match := "<" + strings.Repeat("é", rapid.IntRange(0, 400).Draw(rt, "length")) + ">"
		got := excerpt(before+match+after, len(before), len(before)+len(match))
		if !utf8.ValidString(got) || strings.Contains(got, "\n") || len(got) > 2*excerptAround+excerptMatch+len("……") {
			rt.Fatalf("%q", got)
		}
		if !strings.Contains(got, match[:min(len(match), 41)]) {
			rt.Fatalf("%q does not show %q", got, match)
		}
		if strings.HasPrefix(got, "…") != (len(before) > excerptAround) {
			rt.Fatalf("%q after %d bytes", got, len(before))
		}
	})
}

// TestSearchCopy: what a copy was given is found in it, for it stands nowhere else in
// its chain.
func TestSearchCopy(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Seed(ThreadContinued{PreviousThreadID: "test/before-1", Via: thread.ViaFork}, []llm.Message{llm.Text(llm.User, "look")}))
	must(t, w.Close())
	if got := places(search(t, path, "look", false, 50)); !slices.Equal(got, []string{"2 cognition_in"}) {
		t.Errorf("found %q", got)
	}
}
