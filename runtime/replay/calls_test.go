package replay

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// TestFailedAnswers: an answer that was taken for a failure comes again as that answer,
// with the vendor's word; one that stood all the same comes once.
func TestFailedAnswers(t *testing.T) {
	t.Parallel()
	var c callReader
	add := func(kind thread.EventType, payload any) {
		t.Helper()
		raw, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.add(thread.Event{Type: kind, Payload: raw}); err != nil {
			t.Fatal(err)
		}
	}
	add(thread.EventErrorClassified, transcript.ErrorClassified{Turn: 1, Type: typeFailed, Code: "network_error"})
	add(thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 2})
	add(thread.EventErrorClassified, transcript.ErrorClassified{Turn: 2, Type: typeRefusal, Code: "SAFETY"})
	add(thread.EventCognitionOut, transcript.CognitionOut{Turn: 2, StopReason: llm.StopRefusal, StopWord: "SAFETY"})
	if len(c.calls) != 2 {
		t.Fatalf("%d calls", len(c.calls))
	}
	for i, want := range []llm.Response{{StopReason: llm.StopFailed, StopWord: "network_error"}, {StopReason: llm.StopRefusal, StopWord: "SAFETY"}} {
		if got := c.calls[i]; got.Failure != nil || got.Answer.StopReason != want.StopReason || got.Answer.StopWord != want.StopWord {
			t.Errorf("call %d: %+v", i, got)
		}
	}
}

// TestFallback: a model that was never asked is not known, but for the one that the thread
// began with, which its directive may name as the fallback, too.
func TestFallback(t *testing.T) {
	t.Parallel()
	began := &recording.Thread{Meta: thread.Meta{Model: "a/first"}}
	other := &recording.Thread{Meta: began.Meta, Settings: recording.Settings{Models: []recording.Model{{Ref: "a/first"}, {Ref: "a/second"}}}}
	for name, c := range map[string]struct {
		thread         *recording.Thread
		fallback, want string
	}{
		"none":            {began, "", ""},
		"the same":        {began, "a/first", "a/first"},
		"not on record":   {began, "a/second", "the fallback a/second is not on record"},
		"on record":       {other, "a/second", "a/second"},
		"by another name": {other, "high", "a/second"},
	} {
		choice, named, err := models{thread: c.thread}.Fallback(t.Context(), provider.Want{Fallback: c.fallback})
		got := ""
		if named {
			got = choice.Ref()
		} else if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
