package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// instant is a model that answers at once with a tool call, and with text from
// the given turn on. It notes when each request had come in whole.
type instant struct {
	turns int
	came  []time.Time
	then  func() // when a request has come in; may be nil
}

func (m *instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	m.came = append(m.came, time.Now()) // one request at a time
	if m.then != nil {
		m.then()
	}
	block, stop := `{"type":"tool_use","id":"call","name":"test_echo","input":{}}`, "tool_use"
	if len(m.came) >= m.turns {
		block, stop = `{"type":"text","text":"done"}`, "end_turn"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []string{
		`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"small","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + stop + `"},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	} {
		// The library takes the type from the name of the event.
		var typed struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &typed)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", typed.Type, e)
	}
}

// rounds is how often a benchmark measures what it compares, in turn.
const rounds = 4

// fastest holds, for each turn of a conversation, the shortest time of all
// rounds from its call of the model to the next: what else the machine does can
// only make it longer.
type fastest []time.Duration

func (f *fastest) add(came []time.Time) {
	for i := range came[1:] {
		took := came[i+1].Sub(came[i])
		if i == len(*f) {
			*f = append(*f, took)
		}
		(*f)[i] = min((*f)[i], took)
	}
}

// mean is the time of a turn, of those from one to another.
func (f fastest) mean(from, to int) time.Duration {
	var sum time.Duration
	for _, took := range f[from:to] {
		sum += took
	}
	return sum / time.Duration(to-from)
}

// reportRatio reports a measured ratio and the one that is wanted at most.
func reportRatio(b *testing.B, measured, baseline time.Duration, goal float64) {
	b.ReportMetric(float64(measured)/float64(baseline), "x-baseline")
	b.ReportMetric(goal, "x-goal")
	b.ReportMetric(float64(measured.Microseconds()), "µs")
	b.ReportMetric(float64(baseline.Microseconds()), "µs-baseline")
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

// BenchmarkRatioTurn compares a turn of a thread, with a built-in tool and a
// model without latency, to the same call made with the vendor's library alone,
// as its documentation shows it: the mean time from a call of the model to the
// next, in a conversation of a hundred. Checkpoints are on disk (fdatasync),
// costs are committed with synchronous NORMAL.
func BenchmarkRatioTurn(b *testing.B) {
	b.Run("per-turn overhead, built-in tool, zero-latency model/the vendor's library making the same calls/checkpoint=fdatasync,cost=NORMAL", func(b *testing.B) {
		const turns = 100
		var threads, bare fastest
		for b.Loop() {
			for range rounds {
				h, model, id := benchThread(b, turns)
				if rec := h.end(b.Context(), id); rec.Cost.Turns != turns {
					b.Fatalf("%+v", rec.Outcome)
				}
				threads.add(model.came)
				model.came = nil
				h.callBare(b.Context(), model)
				bare.add(model.came)
			}
		}
		reportRatio(b, threads.mean(0, turns-1), bare.mean(0, turns-1), 3)
	})
}

// BenchmarkRatioMessage compares a turn during which somebody posts a message, from the
// post to the model's next request with it, to a turn without one. The post, the
// checkpoint behind the message and the delivery are each on disk.
func BenchmarkRatioMessage(b *testing.B) {
	b.Run("turn with a message, post to the next request/a turn without/post=FULL,checkpoint=fdatasync,delivery=FULL", func(b *testing.B) {
		const turns = 40
		var told, untold fastest
		for b.Loop() {
			for range rounds {
				for _, with := range []bool{true, false} {
					h, model, id := benchThread(b, turns)
					times := &untold
					if with {
						times, model.then = &told, func() {
							if len(model.came) < turns-1 {
								h.post(id, "and mind the gap")
							}
						}
					}
					if rec := h.end(b.Context(), id); rec.Cost.Turns != turns || with && len(h.read(id)) != turns-2 {
						b.Fatalf("%+v", rec.Outcome)
					}
					times.add(model.came)
				}
			}
		}
		reportRatio(b, told.mean(0, turns-2), untold.mean(0, turns-2), 4)
	})
}

// callBare has the conversation of a thread without a thread.
func (h *house) callBare(ctx context.Context, model *instant) {
	h.t.Helper()
	server := httptest.NewServer(model)
	defer server.Close()
	client := anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(server.URL))
	params := anthropic.MessageNewParams{
		Model: "small", MaxTokens: 4000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Do the task."))},
	}
	for _, t := range h.tools.all() {
		d := t.Definition()
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: palette.FlatName(d.ID), Description: param.NewOpt(d.Description),
			InputSchema: param.Override[anthropic.ToolInputSchemaParam](d.Schema),
		}})
	}
	for range model.turns {
		stream := client.Messages.NewStreaming(ctx, params)
		var answer anthropic.Message
		for stream.Next() {
			if err := answer.Accumulate(stream.Current()); err != nil {
				h.t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil {
			h.t.Fatal(err)
		}
		result := anthropic.NewToolResultBlock("call", "{}", false)
		params.Messages = append(params.Messages, answer.ToParam(), anthropic.NewUserMessage(result))
	}
}

// BenchmarkRatioLateTurn compares a turn around turn 200 with one around turn
// 20, from call to call of the model, transport included: the conversation that
// is sent is ten times as long, as the protocol demands, and nothing else
// should be.
func BenchmarkRatioLateTurn(b *testing.B) {
	b.Run("turn 200/turn 20/checkpoint=fdatasync,cost=NORMAL", func(b *testing.B) {
		var all fastest
		for b.Loop() {
			for range rounds {
				h, model, id := benchThread(b, 220)
				h.end(b.Context(), id)
				all.add(model.came)
			}
		}
		reportRatio(b, all.mean(190, 210), all.mean(10, 30), 1.5)
	})
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
