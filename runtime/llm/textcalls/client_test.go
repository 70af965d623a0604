package textcalls

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// vendor answers with what it is given, in two pieces.
type vendor struct {
	answer llm.Response
	err    error
	asked  []llm.Request
}

func (v *vendor) Stream(_ context.Context, req llm.Request, sink func(llm.Delta)) (llm.Response, error) {
	v.asked = append(v.asked, req)
	req.Sent(0)
	for _, b := range v.answer.Blocks {
		half := len(b.Text) / 2
		sink(llm.Delta{Type: b.Type, Text: b.Text[:half]})
		sink(llm.Delta{Type: b.Type, Text: b.Text[half:]})
	}
	return v.answer, v.err
}

const fencedCall = "Först.\n```json\n{\"tool\": \"known\", \"arguments\": {\"x\": 1}}\n```"

func answering(text string) *vendor {
	return &vendor{answer: llm.Response{
		Model: "m", Blocks: []llm.Block{{Type: llm.ReasoningBlock, Text: "hm", Signature: "s"}, {Type: llm.TextBlock, Text: text}},
		StopReason: llm.StopEnd, Usage: llm.Usage{InputTokens: 7, OutputTokens: 3, Reported: true},
	}}
}

// ask makes a request of turn 4 and returns what was streamed.
func ask(t *testing.T, c llm.Client, tools []llm.Tool) (answer llm.Response, streamed string, err error) {
	t.Helper()
	sent := 0
	answer, err = c.Stream(t.Context(), llm.Request{
		Model: "m", System: "Be brief.", Messages: []llm.Message{llm.Text(llm.User, "go")},
		Tools: tools, MaxTokens: 9, Turn: 4, Sent: func(int64) { sent++ },
	}, func(d llm.Delta) { streamed += d.Text })
	if sent != 1 {
		t.Errorf("told %d times that the request has left", sent)
	}
	return answer, streamed, err
}

var knownTool = []llm.Tool{{Name: "known", Description: "Does it.", Schema: []byte(`{"type":"object"}`)}}

// TestClient: what goes out has tools in the prompt, and what comes in has calls as
// blocks. All else passes as it is: pieces, usage, reasoning, the allowance.
func TestClient(t *testing.T) {
	t.Parallel()
	v := answering(fencedCall)
	answer, streamed, err := ask(t, New(v, known), knownTool)
	if err != nil {
		t.Fatal(err)
	}
	want := v.answer
	want.Blocks = []llm.Block{
		v.answer.Blocks[0], {Type: llm.TextBlock, Text: "Först."},
		{Type: llm.ToolUseBlock, ToolCallID: "text_4_0", ToolName: "known", Input: []byte(`{"x": 1}`)},
	}
	want.StopReason = llm.StopToolUse
	if !reflect.DeepEqual(answer, want) {
		t.Errorf("answer %+v, want %+v", answer, want)
	}
	if streamed != "hm"+fencedCall {
		t.Errorf("streamed %q", streamed)
	}
	asked := v.asked[0]
	described := strings.TrimPrefix(asked.System, "Be brief.\n\n")
	if len(asked.Tools) != 0 || asked.MaxTokens != 9 || asked.Model != "m" ||
		!strings.HasPrefix(described, "# Tools") || !strings.HasSuffix(described, "## known\n\nDoes it.\n\nJSON Schema of the arguments: {\"type\":\"object\"}") {
		t.Errorf("asked %+v", asked)
	}
	if bytes, chars := Size(knownTool); int(bytes) != len(described) || int(chars) != utf8.RuneCountInString(described) {
		t.Errorf("%d bytes and %d characters of %d", bytes, chars, len(described))
	}
}

// TestClientWithoutTools: nothing is said of calls and none is read.
func TestClientWithoutTools(t *testing.T) {
	t.Parallel()
	v := answering(fencedCall)
	answer, _, err := ask(t, New(v, known), nil)
	if err != nil || !reflect.DeepEqual(answer, v.answer) || v.asked[0].System != "Be brief." {
		t.Errorf("answer %+v, %v; asked %+v", answer, err, v.asked[0])
	}
}

// TestClientOnErrors: an answer that broke off is no answer yet, so that its text stays
// as it is, and its usage and error are those of the provider.
func TestClientOnErrors(t *testing.T) {
	t.Parallel()
	v := answering(fencedCall)
	v.err = &llm.APIError{Status: 529, MidStream: true, Message: "overloaded"}
	answer, _, err := ask(t, New(v, known), knownTool)
	if !errors.Is(err, v.err) || !reflect.DeepEqual(answer, v.answer) {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

// TestClientCutOff: the reason why an answer ended is left alone unless it ended of
// itself, so that a call at the limit of the output is known to be cut off.
func TestClientCutOff(t *testing.T) {
	t.Parallel()
	v := answering(strings.TrimSuffix(fencedCall, "}}\n```"))
	v.answer.StopReason = llm.StopMaxTokens
	answer, _, err := ask(t, New(v, known), knownTool)
	last := answer.Blocks[len(answer.Blocks)-1]
	if err != nil || answer.StopReason != llm.StopMaxTokens || last.ToolName != "known" || !strings.HasPrefix(string(last.Input), `{"tool"`) {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

// TestThoughts: a call that a model only thinks of, in the text of its answer, is not made.
func TestThoughts(t *testing.T) {
	t.Parallel()
	const call = "```json\n{\"tool\": \"known\", \"arguments\": {\"x\": 1}}\n```"
	for name, c := range map[string]struct {
		text string
		cut  bool
		want string
	}{
		"then an answer":       {text: "<think>\nI could:\n" + call + "\nNo.\n</think>\n\nFour.", want: "<think>\nI could:\n" + call + "\nNo.\n</think>\n\nFour."},
		"then a call":          {text: "<think>\n" + call + "\n</think>\n\n" + call, want: "<think>\n" + call + "\n</think>|known({\"x\": 1})"},
		"then a bare call":     {text: "<think>Hm.</think>\n{\"tool\": \"known\"}", want: "<think>Hm.</think>|known({})"},
		"begun by a template":  {text: "I could:\n" + call + "\n</think>\n\nFour.", want: "I could:\n" + call + "\n</think>\n\nFour."},
		"fence never ended":    {text: "<think>\n```json\n{\"tool\": \"known\"}\n</think>\n" + call, want: "<think>\n```json\n{\"tool\": \"known\"}\n</think>|known({\"x\": 1})"},
		"cut off":              {text: "<think>\n" + call + "\nOr", cut: true, want: "<think>\n" + call + "\nOr"},
		"never ended":          {text: "<think>\nSo:\n" + call, want: "<think>\nSo:|known({\"x\": 1})"},
		"in what a call holds": {text: "```json\n{\"tool\": \"known\", \"arguments\": {\"x\": \"</think>\"}}\n```", want: `known({"x": "</think>"})`},
		"shown in a fence":     {text: call + "\n```\n</think>\n```", want: "known({\"x\": 1})|```\n</think>\n```"},
	} {
		v := answering(c.text)
		if c.cut {
			v.answer.StopReason = llm.StopMaxTokens
		}
		answer, _, err := ask(t, New(v, known), knownTool)
		if got, _ := strings.CutPrefix(show(answer.Blocks), "hm|"); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestClientDescribesNewTools: other tools are described anew, and tools that are
// described but not offered are only read in the form that models are asked for.
func TestClientDescribesNewTools(t *testing.T) {
	t.Parallel()
	v := answering("{\"name\": \"known\", \"arguments\": {}}")
	c := New(v, func(string) bool { return false })
	answer, _, err := ask(t, c, knownTool)
	if err != nil || len(answer.Blocks) != 2 || answer.Blocks[1].Type != llm.TextBlock {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if _, _, err := ask(t, c, []llm.Tool{{Name: "other"}}); err != nil {
		t.Fatal(err)
	}
	if system := v.asked[1].System; strings.Contains(system, "## known") || !strings.Contains(system, "## other") {
		t.Errorf("the prompt says %q", system)
	}
}
