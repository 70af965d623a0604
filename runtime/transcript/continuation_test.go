package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func handedOver() thread.Outcome {
	return thread.Outcome{State: thread.Continued, Handoff: &thread.Handoff{NewThreadID: "test/demo-2", TrailingTurns: 3}}
}

// TestHandoffIsAnEnd: what holds for the other ends of a thread holds for a
// handoff.
func TestHandoffIsAnEnd(t *testing.T) {
	t.Parallel()
	path, key := newPath(t), newTestKey(1)
	w := open(t, path, key)
	writeTurn(t, w, 1)
	must(t, w.Delta(2, llm.Delta{Type: llm.TextBlock, Text: "never whole"}))
	cost := thread.Cost{Turns: 1, Spend: 700}
	head, err := w.Finish(handedOver(), cost)
	must(t, err)
	must(t, w.Close())

	events := allEvents(t, path)
	var payload map[string]any
	must(t, json.Unmarshal(events[len(events)-2].Payload, &payload))
	if events[len(events)-2].Type != thread.EventThreadHandoff || payload["new_thread_id"] != "test/demo-2" ||
		payload["trailing_turns"] != 3.0 || payload["outcome"] == nil || payload["cost"] == nil {
		t.Errorf("the end is %s %v", events[len(events)-2].Type, payload)
	}
	outcome, spent, err := LastOutcome(records.File(path))
	must(t, err)
	if !reflect.DeepEqual(*outcome, handedOver()) || *spent != cost {
		t.Errorf("outcome %+v, cost %+v", outcome, spent)
	}
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
	again := open(t, path, key)
	if end := again.Decided(); end == nil || end.Outcome.State != thread.Continued {
		t.Errorf("decided %+v", end)
	}
	repeated, err := again.Finish(thread.Outcome{State: thread.Error}, thread.Cost{})
	must(t, errors.Join(err, again.Close()))
	if repeated != head {
		t.Errorf("head %+v, then %+v", head, repeated)
	}
	var text bytes.Buffer
	must(t, Render(records.File(path), &text))
	if !strings.Contains(text.String(), "## Continued\n\n> Handed over to thread `test/demo-2` (turns taken over: 3)\n\nTurns: 1") ||
		strings.Contains(text.String(), "being written") {
		t.Error(text.String())
	}
}

func TestContradictoryEnds(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]thread.Outcome{
		"continued in nothing":    {State: thread.Continued},
		"continued without an id": {State: thread.Continued, Handoff: &thread.Handoff{}},
		"handed over and error":   {State: thread.Error, Handoff: handedOver().Handoff},
	} {
		path := newPath(t)
		w := open(t, path, nil)
		if _, err := w.Finish(o, thread.Cost{}); err == nil || w.Decided() != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Nobody takes for an end what somebody else wrote like that.
		must(t, w.write(thread.EventThreadHandoff, Ended{Outcome: o}))
		must(t, w.Close())
		if outcome, _, err := LastOutcome(records.File(path)); err != nil || outcome != nil {
			t.Errorf("%s: outcome %+v, %v", name, outcome, err)
		}
	}
}

// TestAddBehindTheEndOfAnother: a later process puts on record that the thread was
// resumed.
func TestAddBehindTheEndOfAnother(t *testing.T) {
	t.Parallel()
	path, key := newPath(t), newTestKey(1)
	_, head := writeThread(t, path, key, 2)
	w := open(t, path, key)
	must(t, w.Add(Resumed("test/demo-9", "test/demo", " go on\n"+strings.Repeat("é", 200), 2)))
	must(t, w.Close())
	if _, err := Verify(records.File(path), key, &head); err != nil {
		t.Error(err)
	}
	events := allEvents(t, path)
	got, err := Decode[ThreadResumed](events[len(events)-2])
	must(t, err)
	if got.NewThreadID != "test/demo-9" || got.Directive != "test/demo" || got.ReconstructedTurns != 2 ||
		!strings.HasPrefix(got.MessagePreview, "go on\né") || len(got.MessagePreview) > 210 || !utf8.ValidString(got.MessagePreview) {
		t.Errorf("resumed %+v", got)
	}
}

func TestAddNeedsASignedEnd(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	writeTurn(t, w, 1)
	must(t, w.Checkpoint(1))
	must(t, w.Close())
	w = open(t, path, nil)
	if err := w.Add(Resumed("b", "d", "m", 1)); err == nil {
		t.Error("added to a thread that goes on")
	}
	must(t, w.write(thread.EventThreadError, Ended{Outcome: thread.Outcome{State: thread.Error}}))
	must(t, w.Close())
	w = open(t, path, nil)
	if err := w.Add(Resumed("b", "d", "m", 1)); err == nil {
		t.Error("added to an end that nobody has signed")
	}
	must(t, w.Close())
}

// drawConversation makes messages as Messages gives them, with every call
// answered.
func drawConversation(t *rapid.T) []llm.Message {
	var messages []llm.Message
	for range rapid.IntRange(0, 6).Draw(t, "messages") {
		if rapid.Bool().Draw(t, "user") {
			messages = append(messages, llm.Text(llm.User, rapid.String().Draw(t, "text")))
			continue
		}
		answer := llm.Message{Role: llm.Assistant, Blocks: drawAnswer(t)}
		messages = append(messages, answer)
		var results []llm.Block
		for _, b := range answer.Blocks {
			if b.Type == llm.ToolUseBlock {
				results = append(results, llm.Block{
					Type: llm.ToolResultBlock, ToolCallID: b.ToolCallID, Text: rapid.String().Draw(t, "result"), IsError: rapid.Bool().Draw(t, "error"),
				})
			}
		}
		if len(results) > 0 {
			messages = append(messages, llm.Message{Role: llm.User, Blocks: results})
		}
	}
	return messages
}

// TestSeed: what a thread is given comes back as it went in, before what the
// thread itself says, and all of it verifies.
func TestSeed(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), newTestKey(1)
	rapid.Check(t, func(rt *rapid.T) {
		f, err := os.CreateTemp(dir, "")
		must(rt, err)
		must(rt, f.Close())
		want := drawConversation(rt)
		w := open(rt, f.Name(), key)
		must(rt, w.Seed(ThreadContinued{PreviousThreadID: "test/demo-1", Via: thread.ViaHandoff}, want))
		seeded, err := messages(f.Name())
		must(rt, err)
		if len(want) > 0 && !reflect.DeepEqual(seeded, want) {
			rt.Fatalf("got  %+v\nwant %+v", seeded, want)
		}
		first := allEvents(rt, f.Name())[0]
		continued, err := Decode[ThreadContinued](first)
		must(rt, err)
		if first.Type != thread.EventThreadContinued || continued.Messages != len(want) || continued.Via != thread.ViaHandoff || continued.PreviousThreadID != "test/demo-1" {
			rt.Fatalf("first %s %+v", first.Type, continued)
		}
		writeTurn(rt, w, 1)
		must(rt, w.Checkpoint(1))
		if err := w.Seed(ThreadContinued{}, want); err == nil {
			rt.Fatal("seeded twice")
		}
		must(rt, w.Close())
		whole, err := messages(f.Name())
		must(rt, err)
		if len(whole) != len(want)+2 || len(want) > 0 && !reflect.DeepEqual(whole[:len(want)], want) {
			rt.Fatalf("with a turn: %+v", whole)
		}
		if report, err := Verify(records.File(f.Name()), key, nil); err != nil || report.UnsignedBytes() > 0 || report.LastTurn != 1 {
			rt.Fatalf("report %+v, %v", report, err)
		}
	})
}

// TestSeedWithImages: images lie with the artifacts of the thread that is given
// them.
func TestSeedWithImages(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	must(t, os.MkdirAll(filepath.Join(filepath.Dir(path), "artifacts"), 0o700))
	writeFile(t, filepath.Join(filepath.Dir(path), "artifacts", hash+".png"), []byte("test"))
	want := []llm.Message{
		{Role: llm.Assistant, Blocks: []llm.Block{{Type: llm.ToolUseBlock, ToolCallID: "c1", ToolName: "look", Input: []byte(`{}`)}}},
		{Role: llm.User, Blocks: []llm.Block{{
			Type: llm.ToolResultBlock, ToolCallID: "c1", Text: "seen", Images: []llm.Image{{MediaType: "image/png", Ref: hash, Data: []byte("test")}},
		}}},
	}
	w := open(t, path, nil)
	must(t, w.Seed(ThreadContinued{PreviousThreadID: "a"}, want))
	must(t, w.Close())
	got, err := messages(path)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(string(readFile(t, path)), "dGVzdA") {
		t.Error("the bytes of an image are in the transcript")
	}
}
