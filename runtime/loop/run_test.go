package loop

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// outputs of most directives that have some.
const pathOutput = `<output name="path" type="string" required="true">where</output><output name="count" type="integer">how many</output>`

// doneScript ends the thread with its first answer.
const doneScript = "turns:\n  - {text: done, usage: {input_tokens: 100, output_tokens: 10}}\n"

func TestEndings(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	none := []string{}
	for name, c := range map[string]struct {
		script string
		job    job
		state  thread.State
		code   string // of the error
		text   string // contained in the result, or in the error's message
		turns  int
		spend  thread.Micros // 0: not looked at
		check  func(*testing.T, *house, thread.Record)
	}{
		"text": {
			script: doneScript, job: job{capabilities: none}, state: thread.Completed, text: "done", turns: 1, spend: 120,
		},
		"a direct answer is taken": {
			script: "turns:\n  - {match: {turn: 1}, text: hello}\n", state: thread.Completed, text: "hello", turns: 1,
		},
		"outputs": {
			script: "turns:\n  - tool_calls: [{name: rye_directive_return, input: {path: a.txt, count: 3}}]\n",
			job:    job{outputs: pathOutput}, state: thread.Completed, text: `{"count":3,"path":"a.txt"}`, turns: 1,
			check: func(t *testing.T, _ *house, rec thread.Record) {
				if o := rec.Outcome.Outputs; o["path"] != "a.txt" || fmt.Sprint(o["count"]) != "3" || len(o) != 2 {
					t.Errorf("outputs %v", o)
				}
			},
		},
		"outputs are corrected": {
			script: "turns:\n" +
				"  - {match: {turn: 1}, tool_calls: [{name: rye_directive_return, input: {path: 5, extra: 1, count: 1.5}}]}\n" +
				"  - {match: {last: 'count must be of type integer; extra is not declared'}, tool_calls: [{name: rye_directive_return, input: {count: 1, path: null}}]}\n" +
				"  - {match: {last: path is missing}, tool_calls: [{name: rye_directive_return, input: {path: b, status: maybe}}]}\n" +
				"  - {match: {last: 'status must be success, completed or error'}, tool_calls: [{name: rye_directive_return, input_json: '[1]'}]}\n" +
				"  - {match: {last: not a JSON object}, tool_calls: [{name: rye_directive_return, input_json: '{\"path\": \"b\", \"count\": 9007199254740993}'}]}\n" +
				"  - {match: {last: give such a number as a string}, tool_calls: [{name: rye_directive_return, input: {path: b, count: null, status: success}}]}\n",
			job: job{outputs: pathOutput}, state: thread.Completed, text: `{"path":"b"}`, turns: 6,
		},
		"outputs by the older form": {
			script: "turns:\n" +
				"  - {match: {turn: 1}, tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/agent/threads/directive_return, parameters: {count: 1}}}]}\n" +
				"  - {match: {last: 'path is missing'}, tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/agent/threads/directive_return, parameters: {status: completed, path: a.txt, count: 3}}}]}\n",
			job: job{outputs: pathOutput}, state: thread.Completed, text: `{"count":3,"path":"a.txt"}`, turns: 2,
			check: func(t *testing.T, h *house, rec thread.Record) {
				if o := rec.Outcome.Outputs; o["path"] != "a.txt" || len(o) != 2 {
					t.Errorf("outputs %v", o)
				}
				if got := h.results(rec.ThreadID); len(got) != 2 || got[1].Tool != "rye_execute" || got[1].IsError {
					t.Errorf("results %+v", got)
				}
			},
		},
		"outputs by the older form, as a string, within outputs": {
			script: "turns:\n" +
				"  - tool_calls: [{name: rye_execute, input: {item_id: rye/agent/threads/directive_return, parameters: '{\"status\": \"success\", \"outputs\": {\"path\": \"a.txt\", \"count\": null}}'}}]\n",
			job: job{outputs: pathOutput}, state: thread.Completed, text: `{"path":"a.txt"}`, turns: 1,
		},
		"an error by the older form": {
			script: "turns:\n" +
				"  - tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: rye/agent/threads/directive_return, parameters: {status: error, error_detail: no such repo}}}]\n",
			job: job{outputs: pathOutput}, state: thread.Error, code: "returned_error", text: "no such repo", turns: 1,
		},
		"the directive cannot be carried out": {
			script: "turns:\n  - tool_calls: [{name: rye_directive_return, input: {status: error, error_detail: no such repo}}]\n",
			job:    job{outputs: pathOutput}, state: thread.Error, code: "returned_error", text: "no such repo", turns: 1,
		},
		"of two returns the first counts, after the other calls": {
			script: "turns:\n  - tool_calls: [{name: rye_directive_return, input: {path: one}}, {name: test_echo, input: {word: x}}, {name: rye_directive_return, input: {path: two}}]\n",
			job:    job{outputs: pathOutput}, state: thread.Completed, text: `{"path":"one"}`, turns: 1,
			check: func(t *testing.T, h *house, rec thread.Record) {
				got := h.results(rec.ThreadID)
				if len(got) != 3 || got[0].Tool != "test_echo" || !strings.Contains(got[2].Text, "returned already") {
					t.Errorf("results %+v", got)
				}
			},
		},
		"outputs that never come": {
			script: "turns:\n  - {match: {last: the last reminder}, text: no}\n  - {match: {last: outputs are still missing}, text: 'no'}\n  - {text: 'no'}\n",
			job:    job{outputs: pathOutput}, state: thread.Completed, text: "no", turns: 3,
			check: func(t *testing.T, _ *house, rec thread.Record) {
				if !contains(rec.Outcome.Warnings, "without returning the declared outputs") {
					t.Errorf("warnings %q", rec.Outcome.Warnings)
				}
			},
		},
		"an empty answer": {
			script: "turns:\n  - {match: {last: Your answer was empty}, text: here}\n  - {text: ''}\n",
			job:    job{capabilities: none}, state: thread.Completed, text: "here", turns: 2,
		},
		"nothing but empty answers": {
			script: "turns:\n  - text: ''\n", job: job{capabilities: none}, state: thread.Error, code: "provider_empty", text: "empty answer", turns: 2,
		},
		"an answer in pieces": {
			script: "turns:\n  - {match: {turn: 1}, text: 'one, ', stop_reason: max_tokens}\n" +
				"  - {match: {turn: 2, last: cut off}, text: 'two, ', stop_reason: max_tokens}\n" +
				"  - {match: {turn: 3, last: cut off}, text: 'three, ', stop_reason: max_tokens}\n" +
				"  - {match: {turn: 4}, text: 'four'}\n",
			job: job{capabilities: none}, state: thread.Completed, text: "one, two, three, four", turns: 4,
		},
		"a tool call that was cut off": {
			script: "turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}, {name: rye_directive_return, input: {path: x}}], stop_reason: max_tokens}\n" +
				"  - {match: {last: has not been run}, tool_calls: [{name: rye_directive_return, input: {path: y}}]}\n",
			job: job{outputs: pathOutput}, state: thread.Completed, text: `{"path":"y"}`, turns: 2,
		},
		"refusal": {
			script: "turns:\n  - {text: I will not., stop_reason: refusal, tool_calls: [{name: test_echo}]}\n",
			state:  thread.Error, code: "model_refused", text: "I will not.", turns: 1,
			check: func(t *testing.T, h *house, rec thread.Record) {
				if got := h.results(rec.ThreadID); len(got) > 0 {
					t.Errorf("tools ran: %+v", got)
				}
			},
		},
		"wrong key": {
			script: "turns:\n  - error: {status: 401, type: authentication_error, message: bad key}\n",
			state:  thread.Error, code: "provider_auth", text: "bad key",
		},
		"no money at the provider": {
			script: "turns:\n  - error: {status: 402, type: billing, message: pay}\n",
			state:  thread.Error, code: "provider_quota", text: "pay",
		},
		"conversation too long": {
			script: "turns:\n  - error: {status: 400, type: invalid_request_error, message: 'prompt is too long: 1 > 0'}\n",
			job:    job{fallback: "fake/second"}, state: thread.Error, code: "context_full", text: "prompt is too long",
		},
		"busy twice": {
			script: "turns:\n  - {times: 2, error: {status: 429, type: rate_limit_error, message: slow, retry_after: 20ms}}\n  - text: done\n",
			job:    job{capabilities: none}, state: thread.Completed, text: "done", turns: 1,
			check: func(t *testing.T, h *house, rec thread.Record) {
				tries := events[transcript.Retry](h, rec.ThreadID, thread.EventRetry)
				if len(tries) != 2 || tries[1].Attempt != 3 || tries[1].Reason != "rate_limited" {
					t.Errorf("retries %+v", tries)
				}
			},
		},
		"three failures in a row": {
			script: "turns:\n  - {times: 2, error: {status: 500, type: api_error, message: oops}}\n  - {times: 1, error: {status: 529, type: overloaded_error, message: busy}}\n  - text: too late\n",
			state:  thread.Error, code: "provider_transient", text: "busy",
			check: func(t *testing.T, _ *house, rec thread.Record) {
				if doing := rec.Outcome.Error.Doing; !strings.HasPrefix(doing, "asking the model in turn 1: fake/small 3 times (transient") {
					t.Errorf("doing %q", doing)
				}
			},
		},
		"failures in between": {
			script: "turns:\n  - {times: 2, error: {status: 500, type: api_error, message: oops}}\n" +
				"  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: a}}]}\n" +
				"  - {times: 2, error: {status: 500, type: api_error, message: oops}}\n  - text: done\n",
			state: thread.Completed, text: "done", turns: 2,
		},
		"fallback": {
			script: "turns:\n  - {match: {model: small}, error: {status: 404, type: not_found_error, message: gone}}\n" +
				"  - {match: {model: second, turn: 1}, tool_calls: [{name: test_echo}]}\n  - {match: {model: second}, text: done}\n",
			job: job{fallback: "fake/second"}, state: thread.Completed, text: "done", turns: 2,
			check: func(t *testing.T, _ *house, rec thread.Record) {
				if want := []string{"fake/second has answered from turn 1 on: fake/small failed (permanent)"}; !slices.Equal(rec.Outcome.Warnings, want) {
					t.Errorf("warnings %q, want %q", rec.Outcome.Warnings, want)
				}
			},
		},
		"fallback that fails too": {
			script: "turns:\n  - error: {status: 403, type: permission_error, message: 'no'}\n",
			job:    job{fallback: "fake/second"}, state: thread.Error, code: "provider_auth",
			check: func(t *testing.T, h *house, rec thread.Record) {
				if n := len(h.server.Requests()); n != 2 || len(rec.Outcome.Warnings) > 0 {
					t.Errorf("%d requests, warnings %q", n, rec.Outcome.Warnings)
				}
			},
		},
		"refused for its effort, and then overloaded": {
			script: "turns:\n  - {times: 1, error: {status: 400, type: invalid_request_error, message: This model does not support the effort parameter.}}\n" +
				"  - {times: 1, error: {status: 529, type: overloaded_error, message: busy}}\n  - {text: done}\n",
			job: job{effort: "low"}, state: thread.Completed, text: "done", turns: 1,
			check: func(t *testing.T, _ *house, rec thread.Record) {
				if want := []string{`model small does not take effort="low" and thinks as it does by itself`}; !slices.Equal(rec.Outcome.Warnings, want) {
					t.Errorf("warnings %q, want %q", rec.Outcome.Warnings, want)
				}
			},
		},
		"both fail, each in its words": {
			script: "turns:\n  - {match: {model: small}, error: {status: 403, type: permission_error, message: not yours}}\n" +
				"  - error: {status: 401, type: authentication_error, message: bad key}\n",
			job: job{fallback: "fake/second"}, state: thread.Error, code: "provider_auth", text: "bad key; before that fake/small failed with: model provider: HTTP 403 permission_error: not yours",
		},
		"fallback that cannot be used": {
			script: "turns:\n  - error: {status: 403, type: permission_error, message: first}\n",
			job:    job{fallback: "fake/unpriced"}, state: thread.Error, code: "provider_auth", text: "first",
		},
		"model without a price": {
			script: doneScript, job: job{model: "fake/unpriced"}, state: thread.Error, code: "unpriced_model",
		},
		"provider that is gone": {
			script: doneScript, job: job{model: "lost/small"}, state: thread.Error, code: "no_provider",
		},
		"no turns allowed": {
			script: doneScript, job: job{limits: func(l *thread.Limits) { l.Turns = 0 }},
			state: thread.Error, code: "turns_exceeded", text: "Limit exceeded: turns_exceeded (0/0)",
		},
		"turns": {
			script: "turns:\n  - {tool_calls: [{name: test_echo, input: {word: a}}]}\n", job: job{limits: func(l *thread.Limits) { l.Turns = 2 }},
			state: thread.Error, code: "turns_exceeded", text: "(2/2)", turns: 2,
			check: func(t *testing.T, h *house, rec thread.Record) {
				got := events[transcript.LimitExceeded](h, rec.ThreadID, thread.EventLimitExceeded)
				if len(got) != 1 || got[0].Code != "turns_exceeded" || got[0].Max != "2" {
					t.Errorf("events %+v", got)
				}
			},
		},
		"tokens": {
			script: "turns:\n  - {tool_calls: [{name: test_echo}], usage: {input_tokens: 9000, output_tokens: 10}}\n",
			job:    job{limits: func(l *thread.Limits) { l.Tokens = 9005 }}, state: thread.Error, code: "tokens_exceeded", turns: 1,
		},
		"a budget too small for any call": {
			script: doneScript, job: job{limits: func(l *thread.Limits) { l.Spend = 200 }}, state: thread.Error, code: "spend_exceeded",
			check: func(t *testing.T, h *house, _ thread.Record) {
				if n := len(h.server.Requests()); n != 0 {
					t.Errorf("%d requests were paid for", n)
				}
			},
		},
		"no budget": {
			script: doneScript, job: job{unbudgeted: true}, state: thread.Error, code: "internal", text: store.ErrNoBudget.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(c.script)
			rec := h.run(c.job)
			said := rec.Outcome.Result
			code := ""
			if p := rec.Outcome.Error; p != nil {
				code, said = p.Code, p.Message
			}
			if rec.Status != c.state || code != c.code || !strings.Contains(said, c.text) || rec.Cost.Turns != c.turns {
				t.Errorf("%s, code %q, %q, %d turns; asked %q", rec.Status, code, said, rec.Cost.Turns, h.asked())
			}
			if c.spend != 0 && rec.Cost.Spend != c.spend {
				t.Errorf("spent %s, want %s", rec.Cost.Spend, c.spend)
			}
			if c.check != nil {
				c.check(t, h, rec)
			}
		})
	}
}

// Where a provider reports no usage the allowance of the call is charged, which
// may be less than the configured length of an answer.
func TestUnreportedUsage(t *testing.T) {
	t.Parallel()
	for name, usage := range map[string]string{"none": "", "zeros": `,"usage":{"input_tokens":0,"output_tokens":0}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for _, e := range []string{
					`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"small","content":[]` + usage + `}}`,
					`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"done"}}`,
					`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`,
				} {
					_, _ = fmt.Fprintf(w, "event: x\ndata: %s\n\n", e)
				}
			}))
			t.Cleanup(server.Close)
			h.serveAt(server.URL)
			rec := h.run(job{capabilities: []string{}, limits: func(l *thread.Limits) { l.Spend = 4000 }})
			want := []string{"fake/small reports no usage: each call counts as the most that it can have used, in tokens and money"}
			if !slices.Equal(rec.Outcome.Warnings, want) {
				t.Errorf("warnings %q, want %q", rec.Outcome.Warnings, want)
			}
			if rec.Status != thread.Completed || rec.Cost.OutputTokens < 256 || rec.Cost.OutputTokens >= 2000 || rec.Cost.Spend > 4000 {
				t.Errorf("%s, %+v", rec.Status, rec.Cost)
			}
		})
	}
}

func TestDirectiveChanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(doneScript)
	for _, change := range []string{"changed", "gone"} {
		id := h.register(job{})
		path := filepath.Join(h.project, ".ai/directives/test/task.md")
		if change == "gone" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else {
			h.write(".ai/directives/test/task.md", directive)
		}
		rec := h.end(t.Context(), id)
		want := map[string]string{"changed": "invalid_item", "gone": "not_found"}[change]
		if rec.Status != thread.Error || rec.Outcome.Error.Code != want || len(h.server.Requests()) > 0 {
			t.Errorf("%s: %s %+v", change, rec.Status, rec.Outcome.Error)
		}
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(doneScript)

	id := h.register(job{})
	if _, err := h.store.RequestCancel(t.Context(), id, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if rec := h.end(t.Context(), id); rec.Status != thread.Cancelled || !strings.Contains(rec.Outcome.Error.Message, "before it started") {
		t.Errorf("cancelled before: %s %+v", rec.Status, rec.Outcome.Error)
	}

	id, other := h.register(job{}), h.register(job{})
	data, err := os.ReadFile(h.folder(other).Meta())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.folder(id).Meta(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := newRun(h.deps(id))
	defer foreign.Transcript.Close() //nolint:errcheck // the thread has ended
	rec, err := foreign.toEnd(t.Context())
	if rec.Status != thread.Error || !strings.Contains(rec.Outcome.Error.Message, string(other)) {
		t.Errorf("another thread's thread.json: %s %+v", rec.Status, rec.Outcome.Error)
	}
	if kept, readErr := os.ReadFile(h.folder(id).Meta()); err == nil || readErr != nil || !bytes.Equal(kept, data) {
		t.Errorf("it was written again: %v, %v, %s", err, readErr, kept)
	}
	if n := len(h.server.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// A thread that somebody has settled while its process lives, as when its folder
// was deleted, makes no further call.
func TestSettledByAnother(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {tool_calls: [{name: test_wait}]}\n")
	id := h.register(job{})
	r := newRun(h.deps(id))
	go func() {
		<-h.tools.began
		died := thread.Outcome{State: thread.Error, Error: &thread.Problem{Code: "process_died", Message: "died"}}
		change, err := store.Finished(id, died, nil, time.Now())
		if err == nil {
			_, err = storetest.As(h.store).Apply(context.Background(), change)
		}
		if err != nil {
			t.Error(err)
		}
		close(h.tools.release)
	}()
	rec, err := r.toEnd(t.Context())
	if err != nil || rec.Outcome.Error.Code != "process_died" {
		t.Errorf("%s %+v, %v", rec.Status, rec.Outcome, err)
	}
	if n := len(h.server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A thread.json that was tampered with ends the thread in error, and the caller
// hears that it could not be mended.
func TestTamperedMeta(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(doneScript)
	id := h.register(job{})
	data, err := os.ReadFile(h.folder(id).Meta())
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(data), "rye.execute.tool.test.*", "rye.execute.tool.*", 1)
	if err := os.WriteFile(h.folder(id).Meta(), []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	rec, err := Run(t.Context(), h.deps(id))
	if err == nil || rec.Status != thread.Error || len(h.server.Requests()) > 0 {
		t.Errorf("%s, %v", rec.Status, err)
	}
}

func TestInterrupted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const hanging = "turns:\n  - {text: half an answer, hang: true, cut_after: 3, usage: {input_tokens: 100, output_tokens: 10}}\n"
	const waiting = "turns:\n  - {tool_calls: [{name: test_wait, input: {word: a}}, {name: test_wait, input: {word: b}}]}\n"
	sigterm := func(h *house, cancel context.CancelCauseFunc) { cancel(&thread.SignalError{Signal: "SIGTERM"}) }
	for name, c := range map[string]struct {
		script string
		stop   func(*house, context.CancelCauseFunc) // nil: the time limit does it
		state  thread.State
		code   string
		spend  thread.Micros
	}{
		"cancel during a call":   {hanging, sigterm, thread.Cancelled, "cancelled", 100 + 2*14},
		"cancel during tools":    {waiting, sigterm, thread.Cancelled, "cancelled", 0},
		"plain cancel":           {waiting, func(_ *house, cancel context.CancelCauseFunc) { cancel(nil) }, thread.Cancelled, "cancelled", 0},
		"time is up in a call":   {hanging, nil, thread.Error, "duration_exceeded", 0},
		"time is up in a tool":   {waiting, nil, thread.Error, "duration_exceeded", 0},
		"cancel during back-off": {"turns:\n  - error: {status: 529, type: overloaded_error, message: busy}\n", sigterm, thread.Cancelled, "cancelled", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(c.script)
			h.settings.ToolConcurrency = 1 // the second call waits for its turn
			h.settings.Retry.BaseSeconds, h.settings.Retry.MaxSeconds = 600, 600
			j := job{}
			if c.stop == nil {
				j.limits = func(l *thread.Limits) { l.DurationSeconds = 0.2 }
			}
			id := h.register(j)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.stop != nil {
				go func() {
					h.awaitTrouble(ctx, id)
					c.stop(h, cancel)
				}()
			}
			rec := h.end(ctx, id)
			if rec.Status != c.state || rec.Outcome.Error.Code != c.code {
				t.Fatalf("%s %+v", rec.Status, rec.Outcome.Error)
			}
			if c.spend > 0 && rec.Cost.Spend != c.spend {
				t.Errorf("spent %s, want %s", rec.Cost.Spend, c.spend)
			}
			limits := events[transcript.LimitExceeded](h, id, thread.EventLimitExceeded)
			if (len(limits) == 1) != (c.stop == nil) {
				t.Errorf("limits on record: %+v", limits)
			}
			if started := events[transcript.ToolCallStart](h, id, thread.EventToolCallStart); len(started) > 1 {
				t.Errorf("a call that waited for its turn was run: %+v", started)
			}
		})
	}
}

// awaitTrouble returns when the thread has come to the place where it hangs: a
// tool that began, or text or a retry in the transcript.
func (h *house) awaitTrouble(ctx context.Context, id thread.ID) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		h.t.Error(err)
		return
	}
	defer func() { _ = watcher.Close() }()
	if err := watcher.Add(string(h.folder(id))); err != nil {
		h.t.Error(err)
		return
	}
	for {
		data, err := os.ReadFile(h.folder(id).Transcript())
		if err == nil && (strings.Contains(string(data), "half an answer") || strings.Contains(string(data), `"event_type":"retry"`)) {
			return
		}
		select {
		case <-h.tools.began:
			return
		case <-watcher.Events:
		case <-ctx.Done():
			return
		}
	}
}

// A cancel that only stands in the registry is found before the next turn.
func TestCancelOnRecord(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {tool_calls: [{name: test_wait}]}\n")
	id := h.register(job{})
	go func() {
		<-h.tools.began
		if _, err := h.store.RequestCancel(context.Background(), id, "", time.Now()); err != nil {
			t.Error(err)
		}
		close(h.tools.release)
	}()
	if rec := h.end(t.Context(), id); rec.Status != thread.Cancelled || rec.Cost.Turns != 1 {
		t.Errorf("%s %+v, %d turns", rec.Status, rec.Outcome.Error, rec.Cost.Turns)
	}
}
