package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// speak makes the house's provider one of the given protocol.
func (h *house) speak(protocol, script string) {
	h.t.Helper()
	h.script(script)
	base := h.server.BaseURL()
	if protocol == "openai" {
		base += "/v1"
	}
	h.write(".ai/config/agent/providers/fake.yaml", "api: "+protocol+"\nbase_url: "+base+h.provider)
}

// neverWaits lets back-offs pass at once and keeps how long they would have been.
func (h *house) neverWaits() *[]time.Duration {
	var waits []time.Duration
	h.change = func(r *run) {
		r.recovery.draw = func() float64 { return 0 }
		r.recovery.pause = func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}
	}
	return &waits
}

// categories are those of the failures on record.
func (h *house) categories(id thread.ID) string {
	h.t.Helper()
	var all []string
	for i, e := range events[transcript.ErrorClassified](h, id, thread.EventErrorClassified) {
		if e.Model == "" || e.Attempt == 0 || e.Message == "" || e.Pattern == "" || e.Turn != 1 && e.Category != "empty" {
			h.t.Errorf("failure %d on record: %+v", i, e)
		}
		all = append(all, e.Category)
	}
	return runs(all)
}

// runs writes words in a row that are the same as one with their number.
func runs(words []string) string {
	var out []string
	for len(words) > 0 {
		n := 1
		for n < len(words) && words[n] == words[0] {
			n++
		}
		word := words[0]
		if n > 1 {
			word += fmt.Sprintf("*%d", n)
		}
		out, words = append(out, word), words[n:]
	}
	return strings.Join(out, " ")
}

// TestProviderTrouble drives every class of failure at the wire, in both
// protocols, to the end of the thread and what is on record.
func TestProviderTrouble(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const (
		sse      = "headers: {content-type: text/event-stream}, "
		thenDone = "\n  - text: done"
		half     = `times: 1, text: "half an answer that is long", usage: {input_tokens: 10, output_tokens: 5}, `
	)
	for name, c := range map[string]struct {
		turn       string // YAML; done follows
		code       string // of the outcome; empty: it completes with "done"
		says       string // regular expression in the message
		categories string // of the failures, as runs writes them
		waits      []time.Duration
	}{
		"wrong key":           {turn: "error: {status: 401, type: authentication_error, message: bad key}", code: "provider_auth", says: "bad key", categories: "auth"},
		"forbidden":           {turn: "error: {status: 403, type: permission_error, message: not you}", code: "provider_auth", says: "not you", categories: "auth"},
		"no money":            {turn: "error: {status: 402, type: billing_error, message: pay}", code: "provider_quota", says: "pay", categories: "quota"},
		"no quota":            {turn: "error: {status: 429, type: insufficient_quota, code: insufficient_quota, message: check your plan}", code: "provider_quota", says: "plan", categories: "quota"},
		"unknown model":       {turn: "error: {status: 404, type: not_found_error, message: no such model}", code: "provider_permanent", says: "no such model", categories: "permanent"},
		"bad request":         {turn: "error: {status: 400, type: invalid_request_error, message: bad}", code: "provider_permanent", says: "bad", categories: "permanent"},
		"too long":            {turn: "error: {status: 400, type: invalid_request_error, message: 'prompt is too long: 2 > 1'}", code: "context_full", says: "prompt is too long.*split the task", categories: "context"},
		"too long by code":    {turn: "error: {status: 400, type: invalid_request_error, code: context_length_exceeded, message: 'maximum context length is 1'}", code: "context_full", says: "split the task", categories: "context"},
		"too large":           {turn: "error: {status: 413, type: request_too_large, message: too many bytes}", code: "context_full", says: "too many bytes.*split the task", categories: "context"},
		"too large, by proxy": {turn: "raw: {status: 413, headers: {content-type: text/html}, body: '<html><title>413 Request Entity Too Large</title>'}", code: "context_full", says: "web page titled", categories: "context"},
		"filtered":            {turn: "error: {status: 400, type: content_filter, code: content_filter, message: not this}", code: "provider_refusal", says: "not this", categories: "refusal"},
		"refusal":             {turn: "text: I will not., stop_reason: refusal", code: "model_refused", says: `refused( \(content_filter\))?: I will not`, categories: "refusal"},
		"silent refusal":      {turn: "text: '', stop_reason: refusal", code: "model_refused", says: "without a word", categories: "refusal"},
		"nothing to say":      {turn: "text: ''", code: "provider_empty", says: "empty answer; it was reminded", categories: "empty*2"},
		"reasoning alone":     {turn: "reasoning: hm", code: "provider_empty", says: "empty answer", categories: "empty*2"},
		"nothing at first":    {turn: "times: 1, text: ''", categories: "empty"},

		"asked to wait":       {turn: "times: 2, error: {status: 429, type: rate_limit_error, message: slow, retry_after: 30s}", categories: "rate_limited*2", waits: []time.Duration{30 * time.Second, 30 * time.Second}},
		"in milliseconds":     {turn: "times: 1, error: {status: 429, type: rate_limit_error, message: slow, retry_after: 1500ms}", categories: "rate_limited", waits: []time.Duration{1500 * time.Millisecond}},
		"until a date":        {turn: "times: 1, error: {status: 429, type: t, message: slow, headers: {date: 'Sat, 21 Nov 2026 09:00:00 GMT', retry-after: 'Sat, 21 Nov 2026 09:01:30 GMT'}}", categories: "rate_limited", waits: []time.Duration{90 * time.Second}},
		"until a date past":   {turn: "times: 1, error: {status: 503, type: t, message: slow, headers: {date: 'Sat, 21 Nov 2026 09:00:00 GMT', retry-after: 'Sat, 21 Nov 2026 08:00:00 GMT'}}", categories: "transient", waits: []time.Duration{time.Second}},
		"until a reset":       {turn: "times: 1, error: {status: 429, type: t, message: slow, headers: {x-ratelimit-remaining-tokens: '0', x-ratelimit-reset-tokens: 6s}}", categories: "rate_limited", waits: []time.Duration{6 * time.Second}},
		"longer than it has":  {turn: "error: {status: 429, type: rate_limit_error, message: slow, retry_after: 2h}", code: "provider_rate_limited", says: "slow; not tried again: that would be in 2h0m0s, and [0-9]+m[0-9]+s are left", categories: "rate_limited"},
		"too many requests":   {turn: "error: {status: 429, type: rate_limit_error, message: slow}", code: "provider_rate_limited", says: "slow$", categories: "rate_limited*3", waits: []time.Duration{time.Second, 2 * time.Second}},
		"overloaded":          {turn: "times: 2, error: {status: 529, type: overloaded_error, message: busy}", categories: "transient*2", waits: []time.Duration{time.Second, 2 * time.Second}},
		"failing":             {turn: "error: {status: 500, type: api_error, message: oops}", code: "provider_transient", says: "HTTP 500 api_error: oops$", categories: "transient*3", waits: []time.Duration{time.Second, 2 * time.Second}},
		"in two ways":         {turn: "{times: 1, error: {status: 500, type: api_error, message: oops}}\n  - error: {status: 401, type: t, message: bad key}", code: "provider_auth", says: "bad key", categories: "transient auth", waits: []time.Duration{time.Second}},
		"page of a proxy":     {turn: "times: 1, raw: {status: 502, headers: {content-type: text/html}, body: '<html><title>Bad Gateway</title>'}", categories: "transient", waits: []time.Duration{time.Second}},
		"page of a login":     {turn: "raw: {headers: {content-type: text/html}, body: '<html><title>Log in</title>'}", code: "provider_transient", says: `titled "Log in"`, categories: "transient*3", waits: []time.Duration{time.Second, 2 * time.Second}},
		"one piece":           {turn: "times: 1, raw: {headers: {content-type: application/json}, body: '{}'}", categories: "transient", waits: []time.Duration{time.Second}},
		"success that is not": {turn: "raw: {headers: {content-type: application/json}, body: '{\"error\":{\"type\":\"authentication_error\",\"message\":\"bad key\"}}'}", code: "provider_auth", says: "bad key", categories: "auth"},
		"empty body":          {turn: "times: 1, raw: {" + sse + "body: ''}", categories: "transient", waits: []time.Duration{time.Second}},
		"empty refusal":       {turn: "times: 1, raw: {status: 500, body: ''}", categories: "transient", waits: []time.Duration{time.Second}},
		"error as text":       {turn: "times: 1, raw: {status: 503, body: 'upstream connect error'}", categories: "transient", waits: []time.Duration{time.Second}},
		"error of odd shape":  {turn: "raw: {status: 400, headers: {content-type: application/json}, body: '[{\"error\":{\"error\":{\"message\":\"deep\"}}}]'}", code: "provider_permanent", says: "deep", categories: "permanent"},
		"error that is cut":   {turn: "times: 1, raw: {status: 500, headers: {content-length: '100'}, body: '{\"error\":', cut_after: 5}", categories: "transient", waits: []time.Duration{time.Second}},
		"no events":           {turn: "times: 1, raw: {" + sse + "body: \"garbage\\n\\nmore\\n\\n\"}", categories: "transient", waits: []time.Duration{time.Second}},
		"event of no JSON":    {turn: "raw: {" + sse + "body: \"event: message_start\\ndata: {oops\\n\\n\"}", code: "provider_transient", says: "malformed_answer: event of the answer", categories: "transient*3", waits: []time.Duration{time.Second, 2 * time.Second}},
		"event that is cut":   {turn: "times: 1, raw: {" + sse + "body: \"event: message_start\\ndata: {\\\"type\\\":\", cut_after: 30}", categories: "transient", waits: []time.Duration{time.Second}},
		"redirect":            {turn: "raw: {status: 302, headers: {location: 'http://127.0.0.1:1/'}}", code: "provider_permanent", says: "set base_url", categories: "permanent"},
		"cut":                 {turn: half + "cut_after: 3", categories: "transient", waits: []time.Duration{time.Second}},
		"cut at once":         {turn: "times: 1, cut_after: 0", categories: "transient", waits: []time.Duration{time.Second}},
		"error inside":        {turn: half + "error: {type: overloaded_error, message: busy, after: 3}", categories: "transient", waits: []time.Duration{time.Second}},
		"wrong key inside":    {turn: half + "error: {type: authentication_error, message: revoked, after: 3}", code: "provider_auth", says: "revoked", categories: "auth"},
		"silence":             {turn: "times: 1, hang: true", categories: "transient", waits: []time.Duration{time.Second}},
		"falls silent":        {turn: half + "cut_after: 3, hang: true", categories: "transient", waits: []time.Duration{time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			waits := h.neverWaits()
			h.settings.Retry.BaseSeconds, h.settings.Retry.MaxSeconds = 2, 60
			if strings.Contains(c.turn, "hang") {
				h.write(".ai/config/agent/resilience.yaml", "stall_seconds: 1\n")
			}
			turn := c.turn
			if !strings.HasPrefix(turn, "{") {
				turn = "{" + turn + "}"
			}
			for _, protocol := range []string{"anthropic", "openai"} {
				h.stopped, *waits = nil, nil
				h.speak(protocol, "turns:\n  - "+turn+thenDone+"\n")
				rec := h.run(job{capabilities: []string{}})
				if got := h.categories(rec.ThreadID); got != c.categories {
					t.Errorf("%s: classified as %s, want %s", protocol, got, c.categories)
				}
				if !slices.Equal(*waits, c.waits) {
					t.Errorf("%s: waited %v, want %v", protocol, *waits, c.waits)
				}
				failures := len(events[transcript.ErrorClassified](h, rec.ThreadID, thread.EventErrorClassified))
				if n := len(h.server.Requests()); c.code == "" && n != failures+1 || c.code != "" && n != failures {
					t.Errorf("%s: %d requests", protocol, n)
				}
				h.checkRetries(rec.ThreadID, *waits)
				checkEnd(t, rec, c.code, c.says)
			}
		})
	}
}

// checkRetries: every wait is on record, with the number of the attempt.
func (h *house) checkRetries(id thread.ID, waits []time.Duration) {
	h.t.Helper()
	retries := events[transcript.Retry](h, id, thread.EventRetry)
	if len(retries) != len(waits) {
		h.t.Fatalf("%d retries on record, want %d", len(retries), len(waits))
	}
	for i, retry := range retries {
		if retry.Attempt != i+2 || retry.DelayMS != waits[i].Milliseconds() || retry.Reason == "" || retry.Model != "fake/small" {
			h.t.Errorf("retry %d: %+v", i, retry)
		}
	}
}

func checkEnd(t *testing.T, rec thread.Record, code, says string) {
	t.Helper()
	p := rec.Outcome.Error
	if p == nil {
		p = &thread.Problem{}
	}
	if code == "" {
		if rec.Status != thread.Completed || rec.Outcome.Result != "done" {
			t.Errorf("%s %+v", rec.Status, p)
		}
		return
	}
	if rec.Status != thread.Error || p.Code != code || !regexp.MustCompile(says).MatchString(p.Message) {
		t.Errorf("%s %+v", rec.Status, p)
	}
	if code != "model_refused" && !strings.HasPrefix(p.Doing, "asking the model in turn ") {
		t.Errorf("doing %q", p.Doing)
	}
}

// TestNobodyThere: a provider that cannot be reached is asked three times.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	waits := h.neverWaits()
	h.serveAt("http://127.0.0.1:1")
	rec := h.run(job{})
	checkEnd(t, rec, "provider_transient", "connection refused")
	if got := rec.Outcome.Error.Doing; len(*waits) != 2 || !strings.HasPrefix(got, "asking the model in turn 1: fake/small 3 times (transient") {
		t.Errorf("%v, doing %q", *waits, got)
	}
}

// TestFallback: another model takes over when the first has failed for good or
// too often, at its own price and within its own window.
func TestFallback(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const (
		down   = "turns:\n  - {match: {model: small}, error: {status: 529, type: overloaded_error, message: busy}}\n"
		second = "  - {match: {model: second}, text: done, usage: {input_tokens: 100, output_tokens: 10}}\n"
		models = "  large: {context_window: 400000, input: 1, output: 2}\n  tiny: {context_window: 900, input: 1, output: 2}\n" +
			"  dear: {context_window: 200000, input: 3, output: 5}\n  gold: {context_window: 200000, input: 90000, output: 90000}\n"
	)
	tooLong := "turns:\n  - {match: {model: small}, error: {status: 400, type: t, message: prompt is too long}}\n"
	for name, c := range map[string]struct {
		script   string
		fallback string
		asked    string // models, as runs writes them
		code     string
		says     string
		doing    string
		spend    thread.Micros
	}{
		"overloaded": {down + second, "second", "small*3 second", "", "", "", 120},
		"at its own price": {
			down + strings.ReplaceAll(second, "second", "dear"), "dear", "small*3 dear", "", "", "", 350,
		},
		"gone": {
			"turns:\n  - {match: {model: small}, error: {status: 404, type: t, message: gone}}\n" + second,
			"second", "small second", "", "", "", 120,
		},
		"overloaded too": {
			"turns:\n  - error: {status: 529, type: overloaded_error, message: busy}\n", "second", "small*3 second*3",
			"provider_transient", "busy", "fake/small 3 times (transient; 3s of waiting between), then fake/second 3 times (transient; 3s of waiting between)", 0,
		},
		"once only": {
			"turns:\n  - error: {status: 404, type: t, message: gone}\n", "second", "small second", "provider_permanent", "gone",
			"turn 1: fake/small once (permanent), then fake/second once (permanent)", 0,
		},
		"the same model":      {down, "small", "small*3", "provider_transient", "busy$", "fake/small 3 times (transient; 3s of waiting between)", 0},
		"the same, too small": {tooLong, "small", "small", "context_full", "too long; split the task", "", 0},
		"a larger window":     {tooLong + strings.ReplaceAll(second, "second", "large"), "large", "small large", "", "", "", 120},
		"a window no larger":  {tooLong + second, "second", "small", "context_full", "fake/second is no larger; split the task", "", 0},
		"it does not fit":     {down + second, "tiny", "small*3", "provider_transient", "fallback cannot be used: context window is full", "", 0},
		"it is too dear":      {down + second, "gold", "small*3", "provider_transient", "fallback cannot be used: .*spend_exceeded", "", 0},
		"it has no price":     {down + second, "unpriced", "small*3", "provider_transient", "fallback cannot be used: .*no price", "", 0},
		"a wait too long":     {"turns:\n  - {match: {model: small}, error: {status: 429, type: t, message: slow, retry_after: 3h}}\n" + second, "second", "small second", "", "", "", 120},
		"not after a refusal": {"turns:\n  - {text: I will not., stop_reason: refusal}\n", "second", "small", "model_refused", "I will not", "", 0},
		"what broke off counts": {
			"turns:\n  - {match: {model: small}, text: 'half an answer', usage: {input_tokens: 100, output_tokens: 9}, error: {type: authentication_error, message: revoked, after: 3}}\n" + second,
			"second", "small second", "", "", "", 120 + 100 + 2*14,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.neverWaits()
			h.settings.Retry.BaseSeconds, h.settings.Retry.MaxSeconds = 2, 60
			h.provider += models
			h.script(c.script)
			rec := h.run(job{capabilities: []string{}, fallback: "fake/" + c.fallback})
			checkEnd(t, rec, c.code, c.says)
			var asked []string
			for _, req := range h.server.Requests() {
				asked = append(asked, req.Model)
			}
			if got := runs(asked); got != c.asked {
				t.Errorf("asked %s, want %s", got, c.asked)
			}
			if c.doing != "" && !strings.Contains(rec.Outcome.Error.Doing, c.doing) {
				t.Errorf("doing %q", rec.Outcome.Error.Doing)
			}
			if c.spend != 0 && rec.Cost.Spend != c.spend {
				t.Errorf("spent %s, want %s", rec.Cost.Spend, c.spend)
			}
		})
	}
}

// TestRulings: what a hook decides goes before the default, but not beyond three
// failures in a row.
func TestHookDecisions(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const (
		wrongKey = "turns:\n  - {times: 1, error: {status: 401, type: t, message: bad key}}\n  - text: done\n"
		unknown  = "turns:\n  - {times: 1, error: {status: 418, type: t, message: tea}}\n  - text: done\n"
		always   = "turns:\n  - error: {status: 401, type: t, message: bad key}\n"
		busy     = "turns:\n  - {times: 1, error: {status: 529, type: overloaded_error, message: busy}}\n  - text: done\n"
		refusal  = "turns:\n  - {times: 1, text: I will not., stop_reason: refusal}\n  - text: done\n"
	)
	soon, late := 7*time.Second, 20*time.Minute
	for name, c := range map[string]struct {
		script   string
		decision hookDecision
		err      error
		code     string
		says     string
		requests int
		waits    []time.Duration
	}{
		"none":                        {script: busy, requests: 2, waits: []time.Duration{time.Second}},
		"again, what is not repeated": {script: wrongKey, decision: hookDecision{again: true}, requests: 2, waits: []time.Duration{time.Second}},
		"again, by no rule":           {script: unknown, decision: hookDecision{again: true}, requests: 2, waits: []time.Duration{time.Second}},
		"again, with a wait":          {script: wrongKey, decision: hookDecision{again: true, wait: &soon}, requests: 2, waits: []time.Duration{soon}},
		"again, too often":            {script: always, decision: hookDecision{again: true, wait: &soon}, code: "provider_auth", requests: 3, waits: []time.Duration{soon, soon}},
		"again, too late":             {script: wrongKey, decision: hookDecision{again: true, wait: &late}, code: "provider_auth", says: "not tried again", requests: 1},
		"again, a refusal":            {script: refusal, decision: hookDecision{again: true, wait: &soon}, requests: 2, waits: []time.Duration{soon}},
		"another wait":                {script: busy, decision: hookDecision{wait: &soon}, requests: 2, waits: []time.Duration{soon}},
		"failed":                      {script: busy, decision: hookDecision{fail: true}, code: "provider_transient", says: "busy$", requests: 1},
		"another end":                 {script: busy, decision: hookDecision{end: tool.Faultf("told", "told to stop")}, code: "told", says: "^told to stop$", requests: 1},
		"a hook that fails":           {script: busy, err: errors.New("no such hook"), code: "internal", says: "no such hook", requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			waits := h.neverWaits()
			h.settings.Retry.BaseSeconds, h.settings.Retry.MaxSeconds = 2, 60
			var told []map[string]any
			noWaits := h.change
			h.change = func(r *run) {
				noWaits(r)
				r.recovery.hooks = func(_ context.Context, data map[string]any) (hookDecision, error) {
					told = append(told, data)
					return c.decision, c.err
				}
			}
			h.script(c.script)
			rec := h.run(job{capabilities: []string{}})
			if c.err == nil {
				checkEnd(t, rec, c.code, c.says)
			} else if p := rec.Outcome.Error; p == nil || p.Code != c.code || !strings.Contains(p.Message, c.says) {
				t.Errorf("%+v", p)
			}
			if n := len(h.server.Requests()); n != c.requests || !slices.Equal(*waits, c.waits) {
				t.Errorf("%d requests, waits %v", n, *waits)
			}
			for i, data := range told {
				for _, condition := range []string{"error.model == 'small'", "error.message exists", "classification.category exists"} {
					when, err := expr.ParseWhen(fmt.Sprintf("%s and error.attempt == %d", condition, i+1))
					if err != nil || !when.Eval(data) {
						t.Errorf("%s: %v; told %v", condition, err, data)
					}
				}
			}
		})
	}
}

// TestOwnRules: a project says itself what is retried, and when.
func TestOwnRules(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	waits := h.neverWaits()
	h.write(".ai/config/agent/error_classification.yaml", "patterns:\n"+
		"  - id: sleepy\n    category: transient\n    retryable: true\n"+
		"    match: {all: [{path: status_code, op: eq, value: 418}, {path: headers.x-teapot, op: eq, value: short}, {path: attempt, op: lt, value: 3}]}\n"+
		"    retry_policy: {type: use_header, header: x-nap, fallback: {type: fixed, delay: 5}}\n")
	h.script("turns:\n  - {times: 1, error: {status: 418, type: t, message: tea, headers: {x-teapot: short, x-nap: 2m}}}\n" +
		"  - {times: 1, error: {status: 418, type: t, message: tea, headers: {x-teapot: short}}}\n" +
		"  - {error: {status: 418, type: t, message: tea, headers: {x-teapot: short}}}\n")
	rec := h.run(job{})
	checkEnd(t, rec, "provider_permanent", "tea")
	if want := []time.Duration{2 * time.Minute, 5 * time.Second}; !slices.Equal(*waits, want) {
		t.Errorf("waited %v, want %v", *waits, want)
	}
}

// TestBrokenRules: a file that cannot be used is named, with what it was needed
// for.
func TestBrokenRules(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write(".ai/config/agent/error_classification.yaml", "patterns:\n  - id: a\n    category: nonsense\n    match: {path: a, op: exists}\n")
	h.script("turns:\n  - error: {status: 500, type: t, message: oops}\n")
	rec := h.run(job{})
	if p := rec.Outcome.Error; rec.Status != thread.Error || !regexp.MustCompile(`error_classification.yaml:3: .*category.*oops`).MatchString(p.Message) {
		t.Errorf("%s %+v", rec.Status, p)
	}
}

// TestEmptyAfterWork: a model that has done its work and says nothing more is
// reminded once, and the thread is complete.
func TestEmptyAfterWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_echo}]}\n  - text: ''\n")
	rec := h.run(job{})
	if rec.Status != thread.Completed || rec.Cost.Turns != 3 || !contains(rec.Outcome.Warnings, "without an answer") {
		t.Errorf("%s, %d turns, %+v", rec.Status, rec.Cost.Turns, rec.Outcome)
	}
}

// TestCacheMarks: a thread's calls mark system, tools and the last two messages
// of the user, the marks go on with the conversation, and what is read from the
// cache and written to it has its own price.
func TestCacheMarks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script("turns:\n" +
		"  - {match: {turn: 1}, tool_calls: [{name: test_echo, input: {word: one}}], usage: {input_tokens: 10, output_tokens: 10, cache_write_tokens: 1000}}\n" +
		"  - {match: {turn: 2}, tool_calls: [{name: test_echo, input: {word: two}}], usage: {input_tokens: 10, output_tokens: 10, cache_read_tokens: 1000, cache_write_tokens: 200}}\n" +
		"  - {match: {turn: 3}, text: done, usage: {input_tokens: 10, output_tokens: 10, cache_read_tokens: 1200}}\n")
	rec := h.run(job{})
	if rec.Status != thread.Completed || rec.Cost.CacheReadTokens != 2200 || rec.Cost.CacheWriteTokens != 1200 {
		t.Fatalf("%s %+v", rec.Status, rec.Cost)
	}
	// Input 1, output 2, read 0.1, written 1.25.
	if want := thread.Micros(30 + 60 + 220 + 1500); rec.Cost.Spend != want {
		t.Errorf("spent %s, want %s", rec.Cost.Spend, want)
	}
	for i, want := range []string{"tools user0", "tools user0 user1", "tools user1 user2"} {
		if got := marks(h.server.Requests()[i]); got != want {
			t.Errorf("call %d: marks on %s, want %s", i+1, got, want)
		}
	}
}

// marks names what of a request is marked for caching.
func marks(r scripted.Recorded) string {
	type marked struct {
		CacheControl *struct{ Type string } `json:"cache_control"`
	}
	var body struct {
		System   []marked
		Tools    []marked
		Messages []struct {
			Role    string
			Content []marked
		}
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return err.Error()
	}
	var all []string
	note := func(name string, list []marked) {
		for i, m := range list {
			if m.CacheControl != nil && (m.CacheControl.Type != "ephemeral" || i != len(list)-1) {
				name += "?"
			}
			if m.CacheControl != nil {
				all = append(all, name)
			}
		}
	}
	note("system", body.System)
	note("tools", body.Tools)
	users := 0
	for _, m := range body.Messages {
		note(fmt.Sprint(m.Role, users), m.Content)
		if m.Role == "user" {
			users++
		}
	}
	return strings.Join(all, " ")
}
