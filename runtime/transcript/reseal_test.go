package transcript

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ended is a transcript with an end and something behind it.
func ended(t *testing.T) (path string, head thread.TranscriptHead) {
	t.Helper()
	path = newPath(t)
	w := open(t, path, newTestKey(1))
	must(t, w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "in pieces"}))
	writeTurn(t, w, 1)
	head, err := w.Finish(thread.Outcome{State: thread.Completed, Result: "done"}, thread.Cost{Turns: 1})
	must(t, err)
	must(t, w.Add(Addition{thread.EventHookFired, HookFired{HookID: "h"}}))
	must(t, w.Close())
	return path, head
}

// TestReseal: the checkpoints are another signer's, and everything else is as it was.
func TestReseal(t *testing.T) {
	t.Parallel()
	path, before := ended(t)
	other := newTestKey(2)
	var sealed bytes.Buffer
	head, err := Reseal(records.File(path), &sealed, other)
	must(t, err)
	copied := newPath(t)
	must(t, os.WriteFile(copied, sealed.Bytes(), 0o600))
	if _, err := Verify(records.File(copied), other, &head); err != nil {
		t.Error(err)
	}
	if _, err := Verify(records.File(copied), newTestKey(1), &head); err == nil {
		t.Error("it verifies with the key of before")
	}
	if head.Checkpoints != before.Checkpoints || head.Hash == before.Hash {
		t.Errorf("%+v, before %+v", head, before)
	}
	was, is := allEvents(t, path), allEvents(t, copied)
	if len(was) != len(is) {
		t.Fatalf("%d events became %d", len(was), len(is))
	}
	for i := range was {
		same := string(was[i].Payload) == string(is[i].Payload)
		if was[i].Seq != is[i].Seq || !was[i].Timestamp.Equal(is[i].Timestamp) || same == (was[i].Type == thread.EventCheckpoint) {
			t.Errorf("%s became %s", was[i].Payload, is[i].Payload)
		}
	}
}

// One that has no end, or whose last lines nobody has signed, is not vouched for.
func TestResealRefuses(t *testing.T) {
	t.Parallel()
	path, _ := ended(t)
	whole, err := os.ReadFile(path)
	must(t, err)
	lines := strings.SplitAfter(string(whole), "\n")
	for name, text := range map[string]string{
		"empty": "", "no end": strings.Join(lines[:2], ""), "unsigned": strings.Join(lines[:len(lines)-2], ""),
		"torn": string(whole[:len(whole)-1]), "no event": "{}\n" + string(whole),
	} {
		cut := newPath(t)
		must(t, os.WriteFile(cut, []byte(text), 0o600))
		if _, err := Reseal(records.File(cut), &bytes.Buffer{}, newTestKey(2)); err == nil {
			t.Errorf("%s: sealed", name)
		}
	}
}

// TestWithoutStreams: the pieces of an answer have only their length, and every other
// line is as it was.
func TestWithoutStreams(t *testing.T) {
	t.Parallel()
	path, _ := ended(t)
	var b bytes.Buffer
	must(t, WithoutStreams(records.File(path), &b))
	whole, err := os.ReadFile(path)
	must(t, err)
	was, is := strings.SplitAfter(string(whole), "\n"), strings.SplitAfter(b.String(), "\n")
	if len(was) != len(is) || strings.Contains(b.String(), "in pieces") || !strings.Contains(b.String(), `"bytes":21`) {
		t.Fatalf("%s", b.String())
	}
	for i := range was {
		if was[i] != is[i] && !strings.Contains(was[i], string(thread.EventTokenDelta)) {
			t.Errorf("%s became %s", was[i], is[i])
		}
	}
}
