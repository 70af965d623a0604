package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// show writes blocks in short form: text as it is, calls as name(arguments).
func show(blocks []llm.Block) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == llm.ToolUseBlock {
			parts = append(parts, fmt.Sprintf("%s(%s)", b.ToolName, b.Input))
		} else {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "|")
}

func TestSplitCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"text alone":                             {"Hello.\n", "Hello."},
		"nothing":                                {" \n", ""},
		"call":                                   {"```json\n{\"tool\": \"a\", \"arguments\": {\"x\": 1}}\n```", `a({"x": 1})`},
		"between text":                           {"I look.\n```json\n{\"tool\":\"a\"}\n```\nThen.\n", "I look.|a({})|Then."},
		"two calls":                              {"```json\n{\"tool\":\"a\"}\n```\n\n```JSON\n{\"tool\":\"b\",\"arguments\":null}\n```\n", "a({})|b({})"},
		"indented, carriage returns, long fence": {"  ````json\r\n{\"tool\":\"a\"}\r\n````\r\n", "a({})"},
		"never ended":                            {"```json\n{\"tool\":\"a\"}", "a({})"},
		"cut off":                                {"```json\n{\"tool\": \"a\", \"arguments\": {\"x\": \"lo", `a({"tool": "a", "arguments": {"x": "lo)`},
		"broken":                                 {"```json\n{\"tool\": \"a\", \"arguments\": {x}}\n```", "a({\"tool\": \"a\", \"arguments\": {x}}\n)"},
		"two objects in one":                     {"```json\n{\"tool\":\"a\"}{\"tool\":\"b\"}\n```", "a({\"tool\":\"a\"}{\"tool\":\"b\"}\n)"},
		"arguments of another type":              {"```json\n{\"tool\":\"a\",\"arguments\":[1]}\n```", "a([1])"},
		"other JSON":                             {"```json\n{\"name\":\"a\"}\n```", "```json\n{\"name\":\"a\"}\n```"},
		"more than a call":                       {"```json\n{\"tool\":\"saw\",\"price\":3}\n```", "```json\n{\"tool\":\"saw\",\"price\":3}\n```"},
		"tool of another type":                   {"```json\n{\"tool\":7}\n```", "```json\n{\"tool\":7}\n```"},
		"another language":                       {"```yaml\n{\"tool\":\"a\"}\n```", "```yaml\n{\"tool\":\"a\"}\n```"},
		"quoted in another fence":                {"````markdown\n```json\n{\"tool\":\"a\"}\n```\n````", "````markdown\n```json\n{\"tool\":\"a\"}\n```\n````"},
		"inline":                                 {"Write ```json {\"tool\":\"a\"}```.", "Write ```json {\"tool\":\"a\"}```."},
	} {
		if got := show(splitCalls(c.text)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// What is written in the form calls are read in is read again as it was.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var blocks []llm.Block
		for range rapid.IntRange(0, 4).Draw(rt, "calls") {
			args, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(rt, "arguments"))
			if err != nil {
				rt.Fatal(err)
			}
			name := rapid.StringN(1, 20, -1).Draw(rt, "name")
			blocks = append(blocks, llm.Block{Type: llm.ToolUseBlock, ToolName: name, Input: args})
		}
		var written []string
		for _, b := range blocksInText(blocks, map[string]string{}) {
			written = append(written, b.Text)
		}
		if got, want := show(splitCalls(strings.Join(written, "\n"))), show(blocks); got != want {
			rt.Fatalf("got %q, want %q", got, want)
		}
	})
}

func FuzzReadCalls(f *testing.F) {
	f.Add("a\n```json\n{\"tool\":\"x\",\"arguments\":{}}\n```\nb")
	f.Add("```json\n{\"tool\": \"x\", \"arg")
	f.Add("````\n```json\n```\n```````")
	f.Add("```json\n{\"tool\":\"\\ud800\"}\n```\xff")
	f.Fuzz(func(t *testing.T, text string) {
		a := readCalls(llm.Response{Blocks: []llm.Block{{Type: llm.TextBlock, Text: text}}, StopReason: llm.StopEnd}, 3)
		ids := map[string]bool{}
		rest := text
		for _, b := range a.Blocks {
			switch b.Type {
			case llm.TextBlock:
				// Prose keeps its words and their order.
				i := strings.Index(rest, b.Text)
				if i < 0 || strings.TrimSpace(b.Text) == "" {
					t.Fatalf("text %q is not in what is left of %q", b.Text, text)
				}
				rest = rest[i+len(b.Text):]
			case llm.ToolUseBlock:
				if b.ToolName == "" || len(b.Input) == 0 || ids[b.ToolCallID] {
					t.Fatalf("call %+v", b)
				}
				ids[b.ToolCallID] = true
			default:
				t.Fatalf("block %+v", b)
			}
		}
		if (len(ids) > 0) != (a.StopReason == llm.StopToolUse) {
			t.Fatalf("%d calls, stop reason %s", len(ids), a.StopReason)
		}
	})
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
  - match: {turn: 2, last_regex: '(?s)Result of test_echo:.\{"word":"hi"\}.*Error of test_fail:.*disk full'}
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
  - {match: {model: second, system: "# Tools", last: "Result of test_echo:\n{\"word\":\"hi\"}"}, text: done}
`)
	h.write(".ai/config/agent/providers/plain.yaml", "api: anthropic\nbase_url: "+h.server.BaseURL()+"\ntool_use: text"+plainProvider)
	rec := h.run(job{fallback: "plain/second"})
	if rec.Status != thread.Completed || rec.Outcome.Result != "done" {
		t.Fatalf("%s %+v; asked %q", rec.Status, rec.Outcome, h.asked())
	}
}
