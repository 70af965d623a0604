package loop

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// hostile serves one answer, "done", with this usage, whose form is that of the
// protocol: without a % it is the usage of the end, and nothing is said before.
func (h *house) hostile(api, usage string) {
	h.t.Helper()
	var events []string
	if api == config.APIAnthropic {
		events = []string{
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"small","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"done"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage + `}`,
			`{"type":"message_stop"}`,
		}
	} else {
		events = []string{
			`{"id":"c","model":"small","choices":[{"index":0,"delta":{"content":"done"}}]}`,
			`{"id":"c","model":"small","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			`{"id":"c","model":"small","choices":[],"usage":` + usage + `}`,
			`[DONE]`,
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = fmt.Fprintf(w, "event: x\ndata: %s\n\n", e)
		}
	}))
	h.t.Cleanup(server.Close)
	h.write(".ai/config/agent/providers/fake.yaml", "api: "+api+"\nbase_url: "+server.URL+h.provider)
}

// inBoth is a usage in the words of both protocols.
func inBoth(input, output string) map[string]string {
	return map[string]string{
		config.APIAnthropic: fmt.Sprintf(`{"input_tokens":%s,"output_tokens":%s}`, input, output),
		config.APIOpenAI:    fmt.Sprintf(`{"prompt_tokens":%s,"completion_tokens":%s}`, input, output),
	}
}

// TestAttackAbsurdUsage: a provider reports more tokens than the call can have used, so that money wraps around. The call fails as provider_usage, and what was pledged to it is recorded as spent.
func TestAttackAbsurdUsage(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, usage := range map[string]map[string]string{
		"nine quadrillion":   inBoth("9000000000000000", "1"),
		"wraps to nothing":   inBoth("10", "1844674407370955162"),
		"the largest":        inBoth("9223372036854775807", "9223372036854775807"),
		"more than an int64": inBoth("10", "1e300"),
		"three windows":      inBoth("600001", "10"),
		"in the cache": {
			config.APIAnthropic: `{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":9e15,"cache_creation_input_tokens":9e18}`,
			config.APIOpenAI:    `{"prompt_tokens":9e18,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9e18}}`,
		},
		"in the total": {config.APIOpenAI: `{"prompt_tokens":1,"completion_tokens":1,"total_tokens":9223372036854775807}`},
	} {
		for api, text := range usage {
			t.Run(name+"/"+api, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				h.hostile(api, text)
				id := h.register(job{})
				var pledged thread.Micros
				h.change = func(r *run) {
					r.Crashpoints = func(s thread.Crashpoint) {
						if b, err := r.Store.Budget(t.Context(), id); err == nil && s == CrashAsk {
							pledged = b.Pledged
						}
					}
				}
				rec := h.end(t.Context(), id)
				if rec.Status != thread.Error || rec.Outcome.Error.Code != "provider_usage" || rec.Cost.Turns != 0 {
					t.Errorf("%s after %d turns, %+v", rec.Status, rec.Cost.Turns, rec.Outcome.Error)
				}
				if b, err := h.store.Budget(t.Context(), id); err != nil || rec.Cost.Spend < pledged || pledged == 0 || b.Own != rec.Cost.Spend || b.Actual > b.MaxSpend {
					t.Errorf("%s of %s pledged recorded, ledger %+v, %v", rec.Cost.Spend, pledged, b, err)
				}
			})
		}
	}
}

// TestAttackFreeUsage: a provider reports negative tokens, parts of tokens, no number, no usage or no input at all, so that its answer is free. In place of what makes no sense the thread is charged what the call can have used.
func TestAttackFreeUsage(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const most = 2 * 4000 // the whole allowance, at 2 micro-dollars
	for name, c := range map[string]struct {
		usage         map[string]string
		input, output thread.Micros // -1: as the request is long
	}{
		"negative input":     {inBoth("-100", "10"), firstInput, most},
		"negative output":    {inBoth("100", "-9000"), firstInput, most},
		"negative fraction":  {inBoth("-0.001", "10"), firstInput, most},
		"fractions":          {inBoth("99.5", "9.01"), 100, 20},
		"no number":          {inBoth(`"none"`, "true"), firstInput, most},
		"a number in quotes": {inBoth(`"100"`, `"10"`), 100, 20},
		"no input":           {inBoth("0", "10"), firstInput, 20},
		"no output":          {inBoth("100", "0"), 100, most},
		"zeros":              {inBoth("0", "0"), firstInput, most},
		"nulls":              {inBoth("null", "null"), firstInput, most},
		"no usage":           {map[string]string{config.APIAnthropic: "{}", config.APIOpenAI: "null"}, firstInput, most},
		"no object":          {map[string]string{config.APIOpenAI: "[7]"}, firstInput, most},
	} {
		for api, text := range c.usage {
			t.Run(name+"/"+api, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				h.hostile(api, text)
				rec := h.run(job{})
				input := c.input
				if input == firstInput {
					input = thread.Micros(h.requests(rec.ThreadID)[0].InputTokens)
				}
				if rec.Status != thread.Completed || rec.Cost.Spend != input+c.output || input == 0 {
					t.Errorf("%s, %+v, spent %s; want %s + %s", rec.Status, rec.Outcome.Error, rec.Cost.Spend, input, c.output)
				}
			})
		}
	}
}

// TestAttackNegativePrice: a provider file gives a price below zero, or one that is no number, so that spending earns money. The thread ends before it asks the model.
func TestAttackNegativePrice(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, price := range []string{"-1", ".nan", ".inf", "1e30", "-0.0000001"} {
		h := newHouse(t)
		h.provider = strings.ReplaceAll(plainProvider, "output: 2,", "output: "+price+",")
		h.script(doneScript)
		rec := h.run(job{})
		if rec.Status != thread.Error || rec.Cost.Spend != 0 || len(h.server.Requests()) != 0 {
			t.Errorf("price %s: %s for %s, %d requests", price, rec.Status, rec.Cost.Spend, len(h.server.Requests()))
		}
	}
}

// firstInput stands for the most that the first request can have had of input.
const firstInput thread.Micros = -1

// requests are the requests of a thread that have left.
func (h *house) requests(id thread.ID) []transcript.CognitionRequest {
	return events[transcript.CognitionRequest](h, id, thread.EventCognitionRequest)
}

// A call that broke off is charged for what had arrived, though the last report
// is older: 100 input at 1 and 13 bytes at 2 micro-dollars. One of which nothing had
// arrived is charged for its request, every byte a token.
func TestBrokenOffCallsAreCharged(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		turn  string
		spend thread.Micros
	}{
		// The first event is message_start, the third the text.
		"cut before the text":     {`{times: 1, text: "a short text.", usage: {input_tokens: 100, output_tokens: 50}, cut_after: 1}`, 102},
		"cut after the text":      {`{times: 1, text: "a short text.", usage: {input_tokens: 100, output_tokens: 50}, cut_after: 4}`, 126},
		"error inside":            {`{times: 1, text: "a short text.", usage: {input_tokens: 100, output_tokens: 50}, error: {type: overloaded_error, message: busy, after: 4}}`, 126},
		"cut within a call":       {`{times: 1, tool_calls: [{name: test_echo}], usage: {input_tokens: 100, output_tokens: 50}, cut_after: 2}`, 100 + 2*thread.Micros(len("test_echo"))},
		"cut at once":             {`{times: 1, text: x, cut_after: 0}`, firstInput},
		"success without sense":   {`{times: 1, raw: {headers: {content-type: application/json}, body: '{}'}}`, firstInput},
		"error as a success":      {`{times: 1, raw: {headers: {content-type: application/json}, body: '{"error":{"type":"odd","message":"m"}}'}}`, 0},
		"refused before it began": {`{times: 1, error: {status: 500, type: api_error, message: oops}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script("turns:\n  - " + c.turn + "\n  - {text: done, usage: {input_tokens: 100, output_tokens: 10}}\n")
			rec := h.run(job{capabilities: []string{}})
			if c.spend == firstInput {
				c.spend = thread.Micros(h.requests(rec.ThreadID)[0].InputTokens)
			}
			if rec.Status != thread.Completed || rec.Cost.Turns != 1 || rec.Cost.Spend != c.spend+120 {
				t.Errorf("%s, %d turns, %s; want %s", rec.Status, rec.Cost.Turns, rec.Cost.Spend, c.spend+120)
			}
		})
	}
}

// TestAnswersInOnePiece: an answer that is not streamed is paid for, so it is charged as one
// without usage is, and not asked for again.
func TestAnswersInOnePiece(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for api, body := range map[string]string{
		config.APIOpenAI:    `{"choices":[{"message":{"content":"rate_limit"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`,
		config.APIAnthropic: `{"type":"message","content":[{"type":"text","text":"billing"}],"usage":{"input_tokens":9,"output_tokens":2}}`,
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.speak(api, "turns:\n  - raw: {headers: {content-type: application/json}, body: '"+body+"'}\n")
			rec := h.run(job{capabilities: []string{}})
			checkEnd(t, rec, "provider_permanent", "in one piece .* base_url")
			sent := h.requests(rec.ThreadID)
			if want := thread.Micros(sent[0].InputTokens) + 2*thread.Micros(sent[0].MaxTokens); len(h.server.Requests()) != 1 || rec.Cost.Spend != want {
				t.Errorf("%d requests for %s, want one for %s", len(h.server.Requests()), rec.Cost.Spend, want)
			}
		})
	}
}
