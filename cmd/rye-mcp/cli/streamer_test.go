package cli

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The words go to one stream, whole lines about what is done to the other; a command that
// looks at a thread has both on one, with what the command that starts it leaves out.
func TestStreamer(t *testing.T) {
	t.Parallel()
	var out, aside, both strings.Builder
	none := func(string) string { return "" }
	answer := newAnswerStreamer(System{Stdout: &out, Stderr: &aside, Getenv: none}, options{color: colorAuto})
	look := newLookStreamer(System{Stdout: &both, Getenv: none}, options{color: colorAlways})
	for _, e := range []struct {
		kind    thread.EventType
		payload string
	}{
		{thread.EventThreadStarted, `{"directive":"d","model":"m"}`},
		{thread.EventTokenDelta, `{"type":"text","text":"one"}`},
		{thread.EventTokenDelta, `not JSON`},
		{thread.EventToolCallStart, `{"tool":"rye/bash"}`},
		{thread.EventTokenDelta, `{"type":"text","text":"two\n"}`},
		{thread.EventToolCallResult, `{"tool":"rye/bash","text":"fine"}`},
		{thread.EventThreadHandoff, `{"new_thread_id":"b-1","outcome":{"warnings":["no\nsummary"]}}`},
		{thread.EventTokenDelta, `{"type":"text","text":"three"}`},
		{thread.EventCognitionOut, `{}`},
		{thread.EventCognitionOut, `{"blocks":[{"type":"text","text":"not streamed"}]}`},
		{thread.EventTokenDelta, `{"type":"text","text":"cut o"}`},
		{thread.EventThreadCancelled, `{"outcome":{"status":"cancelled"}}`},
	} {
		for _, s := range []*streamer{answer, look} {
			if err := s.see(thread.Event{Type: e.kind, Payload: []byte(e.payload)}); err != nil {
				t.Errorf("%s %s: %v", e.kind, e.payload, err)
			}
		}
	}
	if got := out.String(); got != "one\ntwo\nthree\nnot streamed\ncut o\n" {
		t.Errorf("out: %q", got)
	}
	if got := aside.String(); got != "→ rye/bash\nWarning: no summary\n⇒ continued by thread b-1\n" {
		t.Errorf("aside: %q", got)
	}
	const want = dim + "● d, model m, at most $0.0000 and 0 turns" + reset + "\none\n" + cyan + "→ rye/bash" + reset + "\ntwo\n" +
		dim + "← rye/bash 4 B: fine" + reset + "\n" + yellow + "Warning: no summary" + reset + "\n" + cyan + "⇒ continued by thread b-1" + reset +
		"\nthree\nnot streamed\ncut o\n" + red + "cancelled after 0 turns, $0.0000" + reset + "\n"
	if both.String() != string(want) {
		t.Errorf("looked at:\n%q\nwant\n%q", both.String(), want)
	}
}
