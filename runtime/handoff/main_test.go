package handoff

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// drawText makes texts of which some are much longer than the rest.
func drawText(t *rapid.T, what string) string {
	return strings.Repeat(rapid.StringN(0, 8, -1).Draw(t, what), rapid.SampledFrom([]int{1, 1, 3, 100, 700}).Draw(t, "times"))
}

// drawAnswer makes an answer with so many calls, which may share an id.
func drawAnswer(t *rapid.T, calls int) llm.Message {
	m := llm.Message{Role: llm.Assistant}
	if rapid.Bool().Draw(t, "thinks") {
		m.Blocks = append(m.Blocks, llm.Block{Type: llm.ReasoningBlock, Text: drawText(t, "thought"), Signature: "sig"})
	}
	if rapid.Bool().Draw(t, "speaks") {
		m.Blocks = append(m.Blocks, llm.Block{Type: llm.TextBlock, Text: drawText(t, "words")})
	}
	for range calls {
		input, err := json.Marshal(map[string]string{"path": drawText(t, "input")})
		must(t, err)
		if rapid.IntRange(0, 9).Draw(t, "broken") == 0 {
			input = input[:len(input)/2]
		}
		m.Blocks = append(m.Blocks, llm.Block{
			Type: llm.ToolUseBlock, ToolCallID: rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "id"), ToolName: "rye_bash", Input: input,
		})
	}
	return m
}

func drawResults(t *rapid.T, answer llm.Message) llm.Message {
	m := llm.Message{Role: llm.User}
	for _, id := range callsOf(answer) {
		b := llm.Block{Type: llm.ToolResultBlock, ToolCallID: id, Text: drawText(t, "result"), IsError: rapid.Bool().Draw(t, "failed")}
		if rapid.IntRange(0, 5).Draw(t, "shows") == 0 {
			b.Images = []llm.Image{{MediaType: "image/png", Ref: "ab", Data: []byte("png")}}
		}
		m.Blocks = append(m.Blocks, b)
	}
	return m
}

// drawConversation makes a conversation in which now and then something is
// missing.
func drawConversation(t *rapid.T) []llm.Message {
	var messages []llm.Message
	for range rapid.IntRange(0, 8).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			messages = append(messages, llm.Text(llm.User, drawText(t, "said")))
		case 1:
			messages = append(messages, drawAnswer(t, 0))
		default:
			answer := drawAnswer(t, rapid.IntRange(1, 4).Draw(t, "calls"))
			results := drawResults(t, answer)
			lost := rapid.IntRange(0, 19).Draw(t, "lost")
			if lost != 0 {
				messages = append(messages, answer)
			}
			if lost != 1 {
				messages = append(messages, results)
			}
		}
	}
	return messages
}

// clone copies messages to tell afterwards whether they were changed.
func clone(t *rapid.T, messages []llm.Message) []llm.Message {
	out := copied(messages)
	for _, m := range out {
		for i := range m.Blocks {
			m.Blocks[i].Input = slices.Clone(m.Blocks[i].Input)
			m.Blocks[i].Images = slices.Clone(m.Blocks[i].Images)
		}
	}
	return out
}

// checkSound fails where a provider would refuse the messages, or the transcript
// could not keep them.
func checkSound(t *rapid.T, messages, original []llm.Message) {
	t.Helper()
	var inputs []string
	for _, m := range original {
		for _, b := range m.Blocks {
			inputs = append(inputs, string(b.Input))
		}
	}
	for i, m := range messages {
		if results := resultsOf(m); len(results) > 0 && (i == 0 || !slices.Equal(results, callsOf(messages[i-1]))) {
			t.Fatalf("message %d answers calls %q that are not made before it", i, results)
		}
		if calls := callsOf(m); len(calls) > 0 && (i+1 == len(messages) || !slices.Equal(calls, resultsOf(messages[i+1]))) {
			t.Fatalf("calls %q of message %d are not answered", calls, i)
		}
		for _, b := range m.Blocks {
			if !utf8.ValidString(b.Text) {
				t.Fatalf("message %d: %q", i, b.Text)
			}
			if len(b.Input) > 0 && !slices.Contains(inputs, string(b.Input)) && !json.Valid(b.Input) {
				t.Fatalf("message %d: input %s", i, b.Input)
			}
		}
	}
}
