package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// endingWith is a turn of a script whose answer, over Chat Completions, ends with a
// vendor's word.
func endingWith(when, text, word string) string {
	chunk := fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":%q}],"usage":{"prompt_tokens":100,"completion_tokens":10}}`, text, word)
	return fmt.Sprintf("  - {%s raw: {headers: {content-type: text/event-stream}, body: %q}}\n", when, "data: "+chunk+"\n\ndata: [DONE]\n\n")
}

// TestStopWords: an answer whose end is none in the vendor's words is no result without
// a warning, and nobody is left to guess which word it was.
func TestStopWords(t *testing.T) {
	t.Parallel()
	const (
		recited   = "content_filter: RECITATION"
		malformed = "function_call_filter: MALFORMED_FUNCTION_CALL"
		starved   = "insufficient_system_resource"
		done      = "  - text: done\n"
	)
	for name, c := range map[string]struct {
		turns      string
		fallback   string
		turnsLimit int
		code       string // of the outcome; empty: it completes with "done"
		says       string
		categories string
		asked      string
	}{
		"filtered": {turns: endingWith("", "The findings are: 1. the", recited), code: "model_refused",
			says: `^the model refused \(content_filter: RECITATION\): The findings`, categories: "refusal", asked: "small"},
		"filtered without a word": {turns: endingWith("", "", "content_filter: PROHIBITED_CONTENT") + done, code: "model_refused",
			says: `^the model refused \(content_filter: PROHIBITED_CONTENT\), without a word$`, categories: "refusal", asked: "small"},
		"a call that could not be read": {turns: endingWith("times: 1,", "", malformed) + done, categories: "transient", asked: "small*2"},
		"broken off":                    {turns: endingWith("times: 2,", "The findings are: 1. the", starved) + done, categories: "transient*2", asked: "small*3"},
		"broken off for good": {turns: endingWith("", "The findings are: 1. the", starved), code: "provider_transient",
			says: `^the provider broke the answer off \(insufficient_system_resource\)$`, categories: "transient*3", asked: "small*3"},
		"broken off, and another model is there": {turns: endingWith("match: {model: small},", "half", starved) + done, fallback: "fake/second",
			categories: "transient*3", asked: "small*3 second"},
		"broken off in the last turn": {turns: endingWith("", "half", starved), fallback: "fake/second", turnsLimit: 1, code: "provider_transient",
			says: `broke the answer off \(insufficient_system_resource\); no turn is left$`, categories: "transient", asked: "small"},
		"empty, in a word that is new": {turns: endingWith("", "", "brand_new"), code: "provider_empty",
			says: `^the model gave an empty answer \(brand_new\); it was reminded`, categories: "empty*2", asked: "small*2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.neverWaits()
			h.speak("openai", "turns:\n"+c.turns)
			rec := h.run(job{capabilities: []string{}, fallback: c.fallback, limits: func(l *thread.Limits) {
				if c.turnsLimit > 0 {
					l.Turns = c.turnsLimit
				}
			}})
			checkEnd(t, rec, c.code, c.says)
			var kinds, asked []string
			for _, e := range events[transcript.ErrorClassified](h, rec.ThreadID, thread.EventErrorClassified) {
				kinds = append(kinds, e.Category)
				if e.Code == "" {
					t.Errorf("the vendor's word is not on record: %+v", e)
				}
			}
			for _, request := range h.server.Requests() {
				asked = append(asked, request.Model)
			}
			if got := runs(kinds); got != c.categories {
				t.Errorf("classified as %s, want %s", got, c.categories)
			}
			if got := runs(asked); got != c.asked {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
			if want := thread.Micros(120 * len(kinds)); c.code != "" && rec.Cost.Spend != want {
				t.Errorf("spent %s, want %s", rec.Cost.Spend, want)
			}
		})
	}
}

// TestBrokenOffUncounted: of an answer that was broken off the provider need not say what it
// has used; that is no habit of its.
func TestBrokenOffUncounted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.neverWaits()
	uncounted, _, _ := strings.Cut(endingWith("times: 1,", "half", "network_error"), `,\"usage\"`)
	h.speak("openai", "turns:\n"+uncounted+"}\\n\\ndata: [DONE]\\n\\n\"}}\n  - text: done\n")
	rec := h.run(job{capabilities: []string{}})
	if rec.Status != thread.Completed || rec.Outcome.Result != "done" || rec.Cost.Turns != 2 || len(rec.Outcome.Warnings) > 0 {
		t.Errorf("%s after %d turns: %+v", rec.Status, rec.Cost.Turns, rec.Outcome)
	}
}

// TestNewStopWord: an answer that ends with a word nobody knows is taken, with a warning
// and the word on record.
func TestNewStopWord(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.speak("openai", "turns:\n"+endingWith("", "The findings are: 1. the", "brand_new"))
	rec := h.run(job{})
	if rec.Status != thread.Completed || rec.Outcome.Result != "The findings are: 1. the" ||
		!slices.ContainsFunc(rec.Outcome.Warnings, func(w string) bool { return strings.Contains(w, `may be cut: the provider ended it with "brand_new"`) }) {
		t.Errorf("%s %+v", rec.Status, rec.Outcome)
	}
	if out := events[transcript.CognitionOut](h, rec.ThreadID, thread.EventCognitionOut); len(out) != 1 || out[0].StopWord != "brand_new" {
		t.Errorf("on record: %+v", out)
	}
}
