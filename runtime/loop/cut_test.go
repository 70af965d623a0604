package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// allowances are the lengths that the server was asked for.
func (h *house) allowances() []int {
	h.t.Helper()
	var most []int
	for _, sent := range h.server.Requests() {
		var request struct {
			MaxTokens int `json:"max_tokens"`
		}
		if err := json.Unmarshal(sent.Body, &request); err != nil {
			h.t.Fatal(err)
		}
		most = append(most, request.MaxTokens)
	}
	return most
}

// TestMuteAnswers: thoughts that use up the output limit are paid for once more, with as
// much as the model can give, and no oftener.
func TestMuteAnswers(t *testing.T) {
	t.Parallel()
	const (
		mute  = "  - {reasoning: hm, stop_reason: max_tokens}\n"
		spoke = "  - {match: {last: Think less}, text: done}\n"
		long  = "  - {times: 1, reasoning: hm, stop_reason: max_tokens, usage: {input_tokens: 1000, output_tokens: 8192}}\n" +
			"  - {reasoning: hm, stop_reason: max_tokens, usage: {input_tokens: 9300, output_tokens: 6000}}\n"
		cut = "  - {match: {last: Think less}, times: 1, text: 'not yet ', stop_reason: max_tokens}\n"
	)
	for name, c := range map[string]struct {
		script   string
		model    string // what is known of it
		window   int    // 0: large
		spend    thread.Micros
		code     string // empty: completed
		says     string
		allowed  []int
		warnings string
	}{
		"again and again":     {mute, "max_output_tokens: 20000", 0, 0, "output_limit", "after 20000 tokens; the model gives no more", []int{8192, 20000}, ""},
		"no longest answer":   {mute, "input: 1", 0, 0, "output_limit", "after 16384 tokens; raise max_output_tokens in agent.yaml", []int{8192, 16384}, ""},
		"no money for more":   {mute, "max_output_tokens: 20000", 0, 40_000, "output_limit", "limits leave no more", nil, ""},
		"once":                {spoke + mute, "max_output_tokens: 20000", 0, 0, "", "done", []int{8192, 20000}, ""},
		"not in a row":        {cut + spoke + mute, "max_output_tokens: 20000", 0, 0, "", "not yet done", []int{8192, 20000, 8192, 20000}, ""},
		"no room for more":    {long, "max_output_tokens: 20000", 16_000, 0, "output_limit", "the context window leaves no more", nil, ""},
		"texts, by the money": {"  - {text: more, stop_reason: max_tokens}\n", "max_output_tokens: 20000", 0, 10_000, "turns_exceeded", "", nil, ""},
		"texts until a limit": {"  - {text: more, stop_reason: max_tokens}\n", "max_output_tokens: 20000", 0, 0, "turns_exceeded", "", nil, "5 answers were cut off by the output limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.provider = fmt.Sprintf("\nmodels:\n  small: {context_window: %d, input: 1, output: 2, %s}\n", cmp.Or(c.window, 200_000), strings.TrimPrefix(c.model, "input: 1"))
			h.script("turns:\n" + c.script)
			rec := h.run(job{capabilities: []string{}, limits: func(l *thread.Limits) {
				l.Turns = 5
				if c.spend > 0 {
					l.Spend = c.spend
				}
			}})
			code, said := "", rec.Outcome.Result
			if rec.Outcome.Error != nil {
				code, said = rec.Outcome.Error.Code, rec.Outcome.Error.Message
			}
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("%s: %q", code, said)
			}
			if got := h.allowances(); c.allowed != nil && !slices.Equal(got, c.allowed) {
				t.Errorf("answers of at most %d, want %d", got, c.allowed)
			}
			if got := strings.Join(rec.Outcome.Warnings, "\n"); (c.warnings == "") != (got == "") || !strings.Contains(got, c.warnings) {
				t.Errorf("warnings %q", got)
			}
		})
	}
}
