package loop

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A model is told where a call of its own stops being JSON, and may mend it.
func TestBrokenCallInText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.provider = "\ntool_use: text" + plainProvider
	h.script(`
turns:
  - match: {turn: 1}
    text: "` + "```json\\n{\\\"tool\\\": \\\"test_echo\\\", \\\"arguments\\\": {\\\"word\\\": 'hi'}}\\n```" + `"
  - match: {turn: 2, last_regex: '(?s)Error of test_echo:.*not valid JSON .invalid character'}
    text: "` + "<tool_call>{\\\"name\\\": \\\"test_echo\\\", \\\"arguments\\\": {\\\"word\\\": \\\"hi\\\"}}</tool_call>" + `"
  - match: {turn: 3, last_regex: '(?s)Result of test_echo:.+\{"word":"hi"\}'}
    text: "done"
`)
	if rec := h.run(job{}); rec.Status != thread.Completed || rec.Outcome.Result != "done" {
		t.Fatalf("%s %+v; asked %q", rec.Status, rec.Outcome, h.asked())
	}
}

// A whole thread with a provider whose models call tools in text.
func TestToolsInText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.provider = "\ntool_use: text" + plainProvider
	h.script(`
turns:
  - match: {turn: 1, system: '## test_echo'}
    text: "I try two.\n` + "```json\\n{\\\"tool\\\": \\\"test_echo\\\", \\\"arguments\\\": {\\\"word\\\": \\\"hi\\\"}}\\n```\\n```json\\n{\\\"tool\\\": \\\"test_fail\\\"}\\n```" + `"
  - match: {turn: 2, last_regex: '(?s)Result of test_echo:.+\{"word":"hi"\}.*Error of test_fail:.*disk full'}
    text: "` + "```json\\n{\\\"tool\\\": \\\"rye_directive_return\\\", \\\"arguments\\\": {\\\"path\\\": \\\"x\\\"}}\\n```" + `"
`)
	rec := h.run(job{outputs: pathOutput})
	if rec.Status != thread.Completed || rec.Outcome.Outputs["path"] != "x" {
		t.Fatalf("%s %+v; asked %q", rec.Status, rec.Outcome, h.asked())
	}
	for _, req := range h.server.Requests() {
		if len(req.Tools) > 0 || strings.Contains(string(req.Body), "tool_use") {
			t.Errorf("tools on the wire: %s", req.Body)
		}
	}
}

// The fallback may call tools otherwise than the first model did.
func TestFallbackFromNativeToText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(`
turns:
  - {match: {model: small, turn: 1}, tool_calls: [{name: test_echo, input: {word: hi}}]}
  - {match: {model: small}, error: {status: 404, type: not_found_error, message: gone}}
  - {match: {model: second, system: "# Tools", last_regex: '^Result of test_echo:\n.{4}result\n\{"word":"hi"\}\n.{4}$'}, text: done}
`)
	h.write(".ai/config/agent/providers/plain.yaml", "api: anthropic\nbase_url: "+h.server.BaseURL()+"\ntool_use: text"+plainProvider)
	rec := h.run(job{fallback: "plain/second"})
	if rec.Status != thread.Completed || rec.Outcome.Result != "done" {
		t.Fatalf("%s %+v; asked %q", rec.Status, rec.Outcome, h.asked())
	}
}
