package loop

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// biller is a provider with a tokeniser of its own: it bills at random, within what a request of
// that size can come to. The conversation still contains in the next call what it contained in one.
type biller struct {
	mu      sync.Mutex
	draw    *rand.Rand
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
	upTo := func(n int64) int64 { return b.draw.Int64N(n + 1) }
	words := int(upTo(min(req.MaxTokens, 600) - 40))
	u := llm.Usage{OutputTokens: int64(words) + 40 + upTo(req.MaxTokens-int64(words)-40)}
	u.CacheReadTokens = upTo(input)
	u.CacheWriteTokens = upTo(input - u.CacheReadTokens)
	u.InputTokens = input - u.CacheReadTokens - u.CacheWriteTokens
	cut := upTo(4) == 0
	if cut {
		u.OutputTokens = int64(words) // no more than what is sent is produced
	}
	b.spent += b.price.Cost(u)
	answer(w, u, words, []string{"test_echo", "test_big"}[upTo(1)], cut)
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
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call","name":"` + tool + `","input":{}}}`,
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

// A thread's spend is all that a provider bills within its allowances, and never exceeds
// the thread's budget.
func TestSpendStaysWithinBudget(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	provider := &biller{price: llm.Price{Input: 1_000_000, Output: 2_000_000, CacheRead: 100_000, CacheWrite: 1_250_000}}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	h.serveAt(server.URL)
	for seed := range uint64(15) {
		draw := rand.New(rand.NewPCG(seed, 0))
		provider.mu.Lock()
		provider.draw, provider.spent = draw, 0
		provider.perByte, provider.fixed = draw.Float64(), draw.Int64N(600)
		budget := thread.Micros(draw.Int64N(150_000))
		provider.mu.Unlock()
		h.stopped = nil
		rec := h.run(job{limits: func(l *thread.Limits) { l.Spend, l.Turns = budget, 8 }})
		// A call that broke off is charged a byte a token, which may be more than
		// was billed.
		if rec.Cost.Spend > budget || rec.Cost.Spend < provider.spent {
			t.Fatalf("seed %d: spent %s of %s, billed %s", seed, rec.Cost.Spend, budget, provider.spent)
		}
		switch p := rec.Outcome.Error; {
		case p == nil, p.Code == "spend_exceeded", p.Code == "turns_exceeded", p.Code == "provider_transient":
		default:
			t.Fatalf("seed %d: %+v", seed, p)
		}
	}
}
