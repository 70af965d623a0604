package loop

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// instant is a model that answers at once with a tool call, and with text from
// the given turn on. It notes when each request came in.
type instant struct {
	turns int
	came  []time.Time
}

func (m *instant) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.came = append(m.came, time.Now()) // one request at a time
	block, stop := `{"type":"tool_use","id":"call","name":"test_echo","input":{}}`, "tool_use"
	if len(m.came) >= m.turns {
		block, stop = `{"type":"text","text":"done"}`, "end_turn"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"small","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	} {
		_, _ = fmt.Fprintf(w, "event: x\ndata: %s\n\n", e)
	}
}

// benchThread is a thread of so many turns, ready to run.
func benchThread(b *testing.B, turns int) (*house, *instant, thread.ID) {
	b.Helper()
	h, model := newHouse(b), &instant{turns: turns}
	server := httptest.NewServer(model)
	b.Cleanup(server.Close)
	h.serveAt(server.URL)
	id := h.register(job{limits: func(l *thread.Limits) { l.Turns = turns + 1 }})
	return h, model, id
}

// BenchmarkTurns compares a thread with a built-in tool and a model without
// latency to the same calls made by the provider's client alone.
func BenchmarkTurns(b *testing.B) {
	const turns = 100
	var threads, bare time.Duration
	for b.Loop() {
		h, model, id := benchThread(b, turns)
		began := time.Now()
		if rec := h.end(b.Context(), id); rec.Cost.Turns != turns {
			b.Fatalf("%+v", rec.Outcome)
		}
		threads += time.Since(began)

		messages, err := transcript.Messages(h.folder(id).Transcript())
		if err != nil {
			b.Fatal(err)
		}
		model.came = nil
		began = time.Now()
		h.callBare(b.Context(), messages)
		bare += time.Since(began)
	}
	calls := float64(b.N * turns)
	b.ReportMetric(float64(threads.Microseconds())/calls, "µs/turn")
	b.ReportMetric(float64(bare.Microseconds())/calls, "µs/bare-call")
	b.ReportMetric(float64(threads)/float64(bare), "ratio")
}

// callBare repeats the calls of a conversation.
func (h *house) callBare(ctx context.Context, messages []llm.Message) {
	h.t.Helper()
	registry := provider.New(config.New(h.roots()), func(string) string { return "" })
	choice, err := registry.Choose(ctx, provider.Want{Override: "fake/small"})
	if err != nil {
		h.t.Fatal(err)
	}
	client, release, err := registry.Open(ctx, choice)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = release() }()
	var tools []llm.Tool
	for _, d := range definitions(h.tools.all()) {
		tools = append(tools, llm.Tool{Name: palette.FlatName(d.ID), Description: d.Description, Schema: d.Schema})
	}
	for n := 1; n < len(messages); n += 2 {
		req := llm.Request{Model: choice.Model.ID, Messages: messages[:n], Tools: tools, MaxTokens: choice.MaxOutput}
		if _, err := client.Stream(ctx, req, func(llm.Delta) {}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// BenchmarkLateTurn compares the time around turn 200 with that around turn 20.
// The conversation that is sent grows; everything else should not.
func BenchmarkLateTurn(b *testing.B) {
	var early, late []time.Duration
	for b.Loop() {
		h, model, id := benchThread(b, 210)
		h.end(b.Context(), id)
		for i := range 20 {
			early = append(early, model.came[10+i].Sub(model.came[9+i]))
			late = append(late, model.came[190+i].Sub(model.came[189+i]))
		}
	}
	slices.Sort(early)
	slices.Sort(late)
	at20, at200 := early[len(early)/2], late[len(late)/2]
	b.ReportMetric(float64(at20.Microseconds()), "µs/turn-20")
	b.ReportMetric(float64(at200.Microseconds()), "µs/turn-200")
	b.ReportMetric(float64(at200)/float64(at20), "ratio")
}

// BenchmarkFirstCall is the time from the start of a thread, in a process that
// is running already, to its first model call.
func BenchmarkFirstCall(b *testing.B) {
	var total time.Duration
	for b.Loop() {
		h, model, id := benchThread(b, 1)
		r := newRun(h.deps(id))
		began := time.Now()
		if _, err := r.toEnd(b.Context()); err != nil {
			b.Fatal(err)
		}
		total += model.came[0].Sub(began)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/first-call")
}
