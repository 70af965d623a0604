package telemetry

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

var update = flag.Bool("update", false, "rewrite golden files")

// family is a root that starts a child by a tool, calls a model that fails once, and is
// continued.
func family(w *world) (root, child, next thread.ID) {
	root = w.ended(thread.Record{
		ThreadID: "team/plan-1", Directive: "team/plan", Model: "anthropic/m-1", QueuedAt: at(0), AdmittedAt: at(10), Status: thread.Continued,
		Cost: thread.Cost{Turns: 2, InputTokens: 100, OutputTokens: 20, CacheReadTokens: 50, CacheWriteTokens: 5, Spend: 1500},
	},
		event(w, 20, thread.EventThreadStarted, transcript.ThreadStarted{Directive: "team/plan"}),
		event(w, 25, thread.EventSystemPrompt, transcript.SystemPrompt{Text: "Be brief."}),
		event(w, 26, thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "Plan it."}}}),
		event(w, 30, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "anthropic/m-1", Bytes: 900}),
		event(w, 60, thread.EventErrorClassified, transcript.ErrorClassified{Turn: 1, Attempt: 1, Model: "anthropic/m-1", Category: "rate_limited", Message: "slow down"}),
		event(w, 60, thread.EventRetry, transcript.Retry{Turn: 1, Attempt: 2, Model: "anthropic/m-1", DelayMS: 40, Reason: "rate_limited"}),
		event(w, 100, thread.EventCognitionRequest, transcript.CognitionRequest{Turn: 1, Model: "anthropic/m-1", Bytes: 900, Attempt: 2}),
		event(w, 200, thread.EventCognitionOut, transcript.CognitionOut{
			Turn: 1, Model: "anthropic/m-1", StopReason: llm.StopToolUse, Spend: 1500, Usage: llm.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 50, CacheWriteTokens: 5},
			Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "I ask a helper."}},
		}),
		event(w, 210, thread.EventToolCallStart, transcript.ToolCallStart{Turn: 1, CallID: "c1", Tool: "rye_execute", Input: transcript.Input(`{"item_id":"help"}`)}),
		event(w, 220, thread.EventChildThreadStarted, transcript.ChildStarted{ThreadID: "help-1", Directive: "help", CallID: "c1"}),
		event(w, 700, thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "c1", Tool: "rye_execute", Text: "helped", Ended: []thread.ID{"help-1"}}),
		event(w, 710, thread.EventToolCallStart, transcript.ToolCallStart{Turn: 1, CallID: "c2", Tool: "rye_bash", Input: transcript.Input(`{"command":"false"}`)}),
		event(w, 720, thread.EventToolCallResult, transcript.ToolCallResult{Turn: 1, CallID: "c2", Tool: "rye_bash", Text: "exit status 1", IsError: true}),
	)
	child = w.ended(thread.Record{
		ThreadID: "help-1", Directive: "help", Model: "openai/m-2", ParentID: root, CreatedAt: at(215), Status: thread.Error,
		Outcome: &thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "spend_exceeded", Message: "0.10 of 0.10 are spent on the secret plan"}},
	})
	w.ended(thread.Record{ThreadID: "aside-1", Kind: thread.KindTool, Directive: "tools/report", ParentID: root, CreatedAt: at(230)})
	next = w.ended(thread.Record{ThreadID: "team/plan-2", Directive: "team/plan", ContinuationOf: root, ChainRootID: root, CreatedAt: at(1000), Model: "anthropic/m-1"})
	return root, child, next
}

// TestGolden holds the JSON of a family of threads, without and with what was said.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"family": nil, "content": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"}} {
		w, r := newWorld(t), newReceiver(t)
		root, _, _ := family(w)
		w.metas[root] = thread.Meta{TraceID: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
		for id := range w.rows { // notes have the time of their files
			w.must(os.Chtimes(w.due.Path(id), noon, noon))
		}
		w.must(w.sender(r.URL, env...).Run(t.Context()))
		var got bytes.Buffer
		if len(r.bodies) != 1 {
			t.Fatalf("%d requests", len(r.bodies))
		}
		w.must(json.Indent(&got, r.bodies[0], "", " "))
		file := filepath.Join("testdata", name+".json")
		if *update {
			w.must(os.WriteFile(file, got.Bytes(), 0o644))
		}
		want, err := os.ReadFile(file)
		if err != nil || got.String() != string(want) {
			t.Errorf("%s: %v\n%s", name, err, got.String())
		}
		if name == "family" {
			for _, said := range []string{"Plan it", "Be brief", "helped", "exit status", "secret plan", "slow down", "false"} {
				if strings.Contains(got.String(), said) {
					t.Errorf("%q is sent, and nobody has asked for what is said", said)
				}
			}
		}
	}
}

// One trace holds a family, every parent is there, and it goes on that of the caller.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"} {
		w, r := newWorld(t), newReceiver(t)
		root, child, next := family(w)
		w.metas[root] = thread.Meta{TraceID: parent}
		w.must(w.sender(r.URL).Run(t.Context()))
		spans, traces, byID := spansIn(r.bodies[0]), map[string]bool{}, map[string]wireSpan{}
		for _, s := range spans {
			traces[s.TraceID], byID[s.SpanID] = true, s
		}
		if len(traces) != 1 || len(byID) != len(spans) || parent != "" && !traces[parent[3:35]] {
			t.Errorf("traces %v, %d ids of %d spans", traces, len(byID), len(spans))
		}
		for _, s := range spans {
			switch _, known := byID[s.ParentSpanID]; {
			case known:
			case s.attribute("rye.thread_id") == string(root) && (s.ParentSpanID == "" && parent == "" || parent != "" && s.ParentSpanID == parent[36:52]):
			default:
				t.Errorf("%s has the parent %q, which is not there", s.Name, s.ParentSpanID)
			}
		}
		call := byID[byID[threadSpan("p", child)].ParentSpanID]
		if call.Name != "execute_tool rye_execute" {
			t.Errorf("the child is below %q", call.Name)
		}
		if links := byID[threadSpan("p", next)].Links; len(links) != 1 || links[0].SpanID != threadSpan("p", root) {
			t.Errorf("links of the successor: %v", links)
		}
	}
}

// A caller that does not record its span has none recorded below.
func TestUnsampled(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	root, _, _ := family(w)
	w.metas[root] = thread.Meta{TraceID: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}
	w.must(w.sender(r.URL).Run(t.Context()))
	if len(r.bodies) != 0 || w.due.Count() != 0 {
		t.Errorf("%d requests, %d due", len(r.bodies), w.due.Count())
	}
}

func TestSampler(t *testing.T) {
	t.Parallel()
	caller := func(sampled bool) thread.Traceparent {
		return thread.Traceparent{Trace: strings.Repeat("f", 32), Span: strings.Repeat("1", 16), Sampled: sampled}
	}
	for _, tt := range []struct {
		sampler, arg              string
		own, recorded, unrecorded bool
	}{
		{"", "", true, true, false},
		{"parentbased_always_off", "", false, true, false},
		{"parentbased_traceidratio", "0", false, true, false},
		{"always_on", "", true, true, true},
		{"always_off", "", false, false, false},
		{"traceidratio", "", true, true, true},
		{"traceidratio", "0.5", true, false, false},
	} {
		s, err := samplerFrom(getenv("OTEL_TRACES_SAMPLER="+tt.sampler, "OTEL_TRACES_SAMPLER_ARG="+tt.arg))
		if err != nil || s.takes(strings.Repeat("1", 32), thread.Traceparent{}) != tt.own ||
			s.takes(caller(true).Trace, caller(true)) != tt.recorded || s.takes(caller(false).Trace, caller(false)) != tt.unrecorded {
			t.Errorf("%+v: %+v, %v", tt, s, err)
		}
	}
	taken := 0
	half, err := samplerFrom(getenv("OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.5"))
	for i := range 1000 {
		if half.takes(traceID("p", thread.ID(strconv.Itoa(i))), thread.Traceparent{}) {
			taken++
		}
	}
	if err != nil || taken < 400 || taken > 600 {
		t.Errorf("%d of 1000, %v", taken, err)
	}
	for _, bad := range [][2]string{{"jaeger_remote", ""}, {"traceidratio", "2"}, {"traceidratio", "NaN"}, {"parentbased_", ""}} {
		if _, err := samplerFrom(getenv("OTEL_TRACES_SAMPLER="+bad[0], "OTEL_TRACES_SAMPLER_ARG="+bad[1])); err == nil {
			t.Errorf("%q can be used", bad)
		}
	}
}

// TestAttackTraceparent: a client names a parent span of all zeros, too long, in capitals, with line ends or of a version that must not be. It counts as none, and the thread has a trace of its own.
func TestAttackTraceparent(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if p, ok := thread.ParseTraceparent(good); !ok || p.String() != good || !p.Sampled {
		t.Fatal(p, ok)
	}
	if p, ok := thread.ParseTraceparent("cc" + good[2:] + "-what-the-future-brings"); !ok || p.String() != good {
		t.Error(p, ok)
	}
	for _, bad := range []string{
		"", "x", good + "-more", good + "\n", strings.ToUpper(good), "ff" + good[2:], good[:54], "00-" + strings.Repeat("0", 32) + good[35:],
		good[:36] + strings.Repeat("0", 16) + good[52:], strings.Replace(good, "-", "_", 1), "\"" + good, good[:3] + strings.Repeat("é", 16) + good[35:], "cc" + good[2:] + "x",
		strings.Repeat("-", 55), "b0b1e8a2-7c1f-4d26-9d6e-1f2f6c0f1a11",
	} {
		if p, ok := thread.ParseTraceparent(bad); ok {
			t.Errorf("%q is %v", bad, p)
		}
		w, r := newWorld(t), newReceiver(t)
		id := w.ended(thread.Record{ThreadID: "d-1", Directive: "d"})
		w.metas[id] = thread.Meta{TraceID: bad}
		w.must(w.sender(r.URL).Run(t.Context()))
		if s := spansIn(r.bodies[0])[0]; s.ParentSpanID != "" || s.TraceID != traceID("p", id) {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}

// TestAttackNamesInSpans: a directive, a tool and a model have names that end texts of JSON, escapes of terminals and bytes that are no text. The JSON that is sent is well-formed, and each is an attribute and nothing else.
func TestAttackNamesInSpans(t *testing.T) {
	t.Parallel()
	const name = "d\"}]},{\"traceId\":\"0\x00\x1b[31m\u202e\xff\n"
	w, r := newWorld(t), newReceiver(t)
	w.ended(thread.Record{ThreadID: "d-1", Directive: name, Model: name + "/" + name}, event(t, 1, thread.EventToolCallStart, transcript.ToolCallStart{Turn: 1, CallID: name, Tool: name}))
	w.must(w.sender(r.URL).Run(t.Context()))
	spans := spansIn(r.bodies[0])
	if len(spans) != 3 || !utf8.Valid(r.bodies[0]) || !json.Valid(r.bodies[0]) {
		t.Fatalf("%d spans in %s", len(spans), r.bodies[0])
	}
	if got := spans[0].attribute("gen_ai.agent.name"); got != strings.ToValidUTF8(name, "\uFFFD") {
		t.Errorf("%q", got)
	}
}

// Ids are stable, none is zero, no two are the same, and no span ends before it begins or
// outside of its thread.
func TestSpansOfAnything(t *testing.T) {
	t.Parallel()
	types := []thread.EventType{
		thread.EventCognitionRequest, thread.EventCognitionOut, thread.EventToolCallStart, thread.EventToolCallResult, thread.EventErrorClassified,
		thread.EventRetry, thread.EventChildThreadStarted, thread.EventHookFired, thread.EventQuestionAsked, thread.EventTokenDelta, thread.EventThreadCompleted,
	}
	rapid.Check(t, func(rt *rapid.T) {
		id := thread.ID(rapid.StringMatching(`[a-z/]{1,8}-[0-9]{1,4}`).Draw(rt, "id"))
		rec := thread.Record{ThreadID: id, Kind: thread.KindDirective, Status: thread.Completed, CreatedAt: noon, CompletedAt: at(rapid.Int64Range(-1000, 9000).Draw(rt, "end"))}
		var events []thread.Event
		for i := range rapid.IntRange(0, 30).Draw(rt, "events") {
			e := event(t, rapid.Int64Range(-5000, 50_000).Draw(rt, "ms"), rapid.SampledFrom(types).Draw(rt, "type"), map[string]any{
				"turn": rapid.IntRange(-1, 3).Draw(rt, "turn"), "call_id": rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "call"), "tool": "t", "model": "p/m",
				"thread_id": rapid.SampledFrom([]string{"c-1", "c-2"}).Draw(rt, "child"), "hook_id": "h", "question_id": "q", "duration_ms": rapid.Int64().Draw(rt, "took"),
			})
			e.Seq = int64(i + 1)
			events = append(events, e)
		}
		make := func() []Span {
			spans, err := Spans(Thread{Place: "p", Record: rec, Root: id, Children: []thread.Record{{ThreadID: "c-1", CreatedAt: noon}, {ThreadID: "c-3", CreatedAt: noon}}, Events: func(yield func(thread.Event, error) bool) {
				for _, e := range events {
					if !yield(e, nil) {
						return
					}
				}
			}})
			if err != nil {
				rt.Fatal(err)
			}
			return spans
		}
		spans, ids := make(), map[string]bool{}
		again := make()
		a, _ := json.Marshal(spans)
		if b, _ := json.Marshal(again); string(a) != string(b) {
			rt.Fatalf("%s\n%s", a, b)
		}
		for _, s := range spans {
			if ids[s.SpanID] || len(s.SpanID) != 16 || len(s.TraceID) != 32 || strings.Trim(s.SpanID, "0") == "" || strings.Trim(s.TraceID, "0") == "" {
				rt.Fatalf("id %s of %s", s.SpanID, s.Name)
			}
			ids[s.SpanID] = true
			if s.End < s.Start || s.Start < nanosOf(noon) || s.End > spans[0].End {
				rt.Fatalf("%s from %d to %d, the thread until %d", s.Name, s.Start, s.End, spans[0].End)
			}
		}
		for _, child := range []thread.ID{"c-1", "c-3"} {
			if !ids[startSpan("p", id, child)] {
				rt.Fatalf("no span is the parent of %s", child)
			}
		}
	})
}

// 64-bit numbers are texts in OTLP's JSON, and enumerations numbers.
func TestEncoding(t *testing.T) {
	t.Parallel()
	big := time.Date(2200, 1, 1, 0, 0, 0, 1, time.UTC)
	text, err := json.Marshal(Span{Kind: kindClient, Start: nanosOf(big), Attributes: []Attribute{
		{"i", Value{int64(1 << 60)}}, {"f", Value{0.5}}, {"l", Value{[]string{"a"}}},
	}, Status: &Status{Code: statusError}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":3`, `"startTimeUnixNano":"` + strconv.FormatInt(big.UnixNano(), 10) + `"`, `"intValue":"1152921504606846976"`,
		`"doubleValue":0.5`, `"arrayValue":{"values":[{"stringValue":"a"}]}`, `"status":{"code":2}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if slices.Contains([]string{traceID("a", "b"), traceID("a:b", "")}, traceID("", "a:b")) {
		t.Error("two words make the id of others")
	}
}
