package loop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// biller is a provider with a tokeniser of its own: it bills what was drawn for
// it, within what a request of that size can come to. What the conversation
// contained in one call it still contains in the next.
type biller struct {
	mu      sync.Mutex
	rt      *rapid.T
	perByte float64 // tokens a byte of content, at most 1
	fixed   int64   // tokens around every request
	spent   thread.Micros
	price   llm.Price
}

func (b *biller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var req struct {
		MaxTokens int64           `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Tools     []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Content []struct {
				Text    string          `json:"text"`
				ID      string          `json:"id"`
				Name    string          `json:"name"`
				Input   json.RawMessage `json:"input"`
				Content []struct{ Text string }
			} `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var size int
	for _, t := range req.Tools {
		size += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	for _, m := range req.Messages {
		for _, c := range m.Content {
			size += len(c.Text) + len(c.ID) + len(c.Name) + len(c.Input)
			for _, part := range c.Content {
				size += len(part.Text)
			}
		}
	}
	input := int64(b.perByte*float64(size)) + b.fixed
	words := rapid.IntRange(0, int(min(req.MaxTokens, 600))-40).Draw(b.rt, "answer bytes")
	u := llm.Usage{OutputTokens: rapid.Int64Range(int64(words)+40, req.MaxTokens).Draw(b.rt, "output")}
	u.CacheReadTokens = rapid.Int64Range(0, input).Draw(b.rt, "cached")
	u.CacheWriteTokens = rapid.Int64Range(0, input-u.CacheReadTokens).Draw(b.rt, "written")
	u.InputTokens = input - u.CacheReadTokens - u.CacheWriteTokens
	cut := rapid.IntRange(0, 4).Draw(b.rt, "cut") == 0
	if cut {
		u.OutputTokens = int64(words) // no more than what is sent is produced
	}
	b.spent += b.price.Cost(u)
	tool := rapid.SampledFrom([]string{"test_echo", "test_big"}).Draw(b.rt, "tool")
	answer(w, u, words, tool, cut)
}

// answer streams text of so many bytes and a tool call, or breaks off after the
// text.
func answer(w http.ResponseWriter, u llm.Usage, words int, tool string, cut bool) {
	text := make([]byte, words)
	for i := range text {
		text[i] = 'x'
	}
	events := []string{
		fmt.Sprintf(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"small","content":[],`+
			`"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":0}}}`,
			u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens),
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text),
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call","name":"`+tool+`","input":{}}}`,
		fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":%d}}`, u.OutputTokens),
		`{"type":"message_stop"}`,
	}
	if cut {
		events = events[:3]
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = fmt.Fprintf(w, "event: x\ndata: %s\n\n", e)
	}
}

// Whatever a provider bills within the allowances it was given, a thread's
// spend is all of that and never exceeds its budget.
func TestSpendStaysWithinBudget(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	provider := &biller{price: llm.Price{Input: 1_000_000, Output: 2_000_000, CacheRead: 100_000, CacheWrite: 1_250_000}}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	h.serveAt(server.URL)
	rapid.Check(t, func(rt *rapid.T) {
		provider.mu.Lock()
		provider.rt, provider.spent = rt, 0
		provider.perByte = rapid.Float64Range(0, 1).Draw(rt, "tokens a byte")
		provider.fixed = rapid.Int64Range(0, 600).Draw(rt, "fixed")
		provider.mu.Unlock()
		budget := thread.Micros(rapid.Int64Range(0, 150_000).Draw(rt, "budget"))
		h.stopped = nil
		rec := h.run(job{limits: func(l *thread.Limits) { l.Spend, l.Turns = budget, 8 }})
		// A call that broke off is charged a byte a token, which may be more than
		// was billed.
		if rec.Cost.Spend > budget || rec.Cost.Spend < provider.spent {
			rt.Fatalf("spent %s of %s, billed %s", rec.Cost.Spend, budget, provider.spent)
		}
		switch p := rec.Outcome.Error; {
		case p == nil, p.Code == "spend_exceeded", p.Code == "turns_exceeded", p.Code == "provider_transient":
		default:
			rt.Fatalf("%+v", p)
		}
	})
}
