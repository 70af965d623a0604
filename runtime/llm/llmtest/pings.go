package llmtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// lively are the beginning of an answer and a sign of life, in a vendor's protocol.
type lively struct{ opening, answer, ping string }

func (s suite) lively() lively {
	if s.protocol == OpenAI {
		return lively{
			opening: `data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n",
			answer:  `data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n",
			ping:    ": still here\n\n",
		}
	}
	if s.protocol == Responses {
		return lively{
			opening: `data: {"type":"response.created","response":{"id":"1","model":"m","status":"in_progress"}}` + "\n\n",
			answer:  `data: {"type":"response.output_text.delta","output_index":0,"item_id":"i","delta":"half"}` + "\n\n",
			ping:    ": still here\n\n",
		}
	}
	return lively{
		opening: "event: message_start\n" + `data: {"type":"message_start","message":{"id":"1","type":"message","role":"assistant",` +
			`"model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n",
		answer: "event: content_block_start\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"half"}}` + "\n\n",
		ping: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
	}
}

// pings: signs of life keep a call that has said nothing for its first timeout, and no
// call that has begun to answer.
func (s suite) pings(t *testing.T) {
	speaks := s.lively()
	for name, c := range map[string]struct{ says, want string }{
		"before the answer": {speaks.opening, "no answer began within 400ms"},
		"within the answer": {speaks.opening + speaks.answer, "nothing of the answer for 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(pinging(c.says, speaks.ping))
			t.Cleanup(server.Close)
			b := s.start(t, "turns: [{text: x}]", func(cfg *wire.Config) {
				cfg.BaseURL = strings.Replace(cfg.BaseURL, strings.TrimSuffix(cfg.BaseURL, "/v1"), server.URL, 1)
				cfg.StallTimeout, cfg.FirstTimeout = shortStall, 4*shortStall
			})
			if _, got := b.fail(t); got.Type != wire.TypeStalled || !strings.Contains(got.Message, c.want) {
				t.Errorf("got %+v, want %q", *got, c.want)
			}
		})
	}
}

// pinging says something, and then that it lives, until nobody listens.
func pinging(says, ping string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flusher := http.NewResponseController(w)
		often := time.NewTicker(shortStall / 10)
		defer often.Stop()
		for text := says; ; text = ping {
			if _, err := io.WriteString(w, text); err != nil || flusher.Flush() != nil {
				return
			}
			select {
			case <-often.C:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// tooLong: an answer that says more than is taken is broken off, and not asked for
// again.
func (s suite) tooLong(t *testing.T) {
	speaks := s.lively()
	more := strings.Replace(speaks.more(), "half", strings.Repeat("x", 64<<10), 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for text := speaks.opening + speaks.answer; ; text = more {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	b := s.start(t, "turns: [{text: x}]", func(cfg *wire.Config) {
		cfg.BaseURL = strings.Replace(cfg.BaseURL, strings.TrimSuffix(cfg.BaseURL, "/v1"), server.URL, 1)
	})
	if _, got := b.fail(t); got.Type != wire.TypeTooLong || got.Status != http.StatusBadRequest || !strings.Contains(got.Message, "longer than 4 MiB") {
		t.Errorf("got %+v", *got)
	}
}

// more is another piece of the answer.
func (l lively) more() string {
	if strings.HasPrefix(l.ping, ":") {
		return l.answer
	}
	return "event: content_block_delta\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half"}}` + "\n\n"
}
