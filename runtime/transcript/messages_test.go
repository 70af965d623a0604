package transcript

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// drawInput makes what a model may write as the input of a call.
func drawInput(t *rapid.T) json.RawMessage {
	input := rapid.SampledFrom([]string{
		`{}`, `{"a":1}`, `{ "a": 1 }`, `{"a":"<&>"}`, `{"a":`, `"text"`, `null`, ``, `[1]`, "{\"a\":\"\u2028\"}", rapid.String().Draw(t, "raw"),
	}).Draw(t, "input")
	if input == "" {
		return nil
	}
	return json.RawMessage(input)
}

func drawAnswer(t *rapid.T) []llm.Block {
	blocks := []llm.Block{}
	for range rapid.IntRange(0, 4).Draw(t, "blocks") {
		switch rapid.IntRange(0, 2).Draw(t, "type") {
		case 0:
			blocks = append(blocks, llm.Block{Type: llm.TextBlock, Text: rapid.String().Draw(t, "text")})
		case 1:
			blocks = append(blocks, llm.Block{Type: llm.ReasoningBlock, Text: rapid.String().Draw(t, "thought"), Signature: rapid.String().Draw(t, "sig")})
		default:
			id := rapid.SampledFrom([]string{"", "c1", "c2", "c3"}).Draw(t, "id") // ids may repeat
			blocks = append(blocks, llm.Block{Type: llm.ToolUseBlock, ToolCallID: id, ToolName: "rye_bash", Input: drawInput(t)})
		}
	}
	return blocks
}

// A conversation comes back as it was, except that open calls are answered.
func TestMessagesRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		f, err := os.CreateTemp(dir, "")
		must(rt, err)
		must(rt, f.Close())
		w := open(rt, f.Name(), nil)
		var want []llm.Message
		for turn := range rapid.IntRange(0, 5).Draw(rt, "turns") {
			if rapid.Bool().Draw(rt, "user") {
				m := llm.Text(llm.User, rapid.String().Draw(rt, "prompt"))
				must(rt, w.Append(thread.EventCognitionIn, CognitionIn{Role: m.Role, Blocks: m.Blocks}))
				want = append(want, m)
			}
			blocks := drawAnswer(rt)
			must(rt, w.Append(thread.EventCognitionOut, CognitionOut{Turn: turn, Blocks: blocks}))
			want = append(want, llm.Message{Role: llm.Assistant, Blocks: blocks})
			if results := recordResults(rt, w, turn, blocks); len(results) > 0 {
				want = append(want, llm.Message{Role: llm.User, Blocks: results})
			}
		}
		must(rt, w.Close())
		got, err := messages(f.Name())
		must(rt, err)
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// recordResults answers some of the calls, in an order of its own, and returns
// the blocks that are due.
func recordResults(t *rapid.T, w *Writer, turn int, blocks []llm.Block) []llm.Block {
	var due []llm.Block
	var order []int
	for _, b := range blocks {
		if b.Type == llm.ToolUseBlock {
			order = append(order, len(due))
			due = append(due, llm.Block{Type: llm.ToolResultBlock, ToolCallID: b.ToolCallID, Text: unanswered, IsError: true})
		}
	}
	for _, i := range rapid.Permutation(order).Draw(t, "order") {
		if !rapid.Bool().Draw(t, "answered") {
			continue
		}
		r := ToolCallResult{Turn: turn, CallID: due[i].ToolCallID, Text: rapid.String().Draw(t, "result"), IsError: rapid.Bool().Draw(t, "error")}
		must(t, w.Append(thread.EventToolCallResult, r))
		// Of several calls with one id the first that is open gets the result.
		for j := range due {
			if due[j].ToolCallID == r.CallID && due[j].Text == unanswered {
				due[j].Text, due[j].IsError = r.Text, r.IsError
				break
			}
		}
	}
	return due
}

func TestMessagesLeavesOutOrphans(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := open(t, path, nil)
	must(t, w.Append(thread.EventToolCallResult, ToolCallResult{CallID: "c9", Text: "nobody asked"}))
	must(t, w.Append(thread.EventCognitionOut, CognitionOut{Turn: 1, Blocks: Blocks{{Type: llm.TextBlock, Text: "hi"}}}))
	must(t, w.Append(thread.EventToolCallResult, ToolCallResult{CallID: "c9", Text: "nobody asked"}))
	must(t, w.Close())
	got, err := messages(path)
	must(t, err)
	if want := []llm.Message{llm.Text(llm.Assistant, "hi")}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func TestMessagesRefusesDamage(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	writeThread(t, path, nil, 2)
	whole := string(readFile(t, path))
	for name, content := range map[string]string{
		"a line that is no event": "{}\n" + whole,
		"a payload of other form": strings.Replace(whole, `"blocks":[`, `"blocks":7,"x":[`, 1),
	} {
		writeFile(t, path, []byte(content))
		if messages, err := messages(path); err == nil {
			t.Errorf("%s: got %d messages", name, len(messages))
		}
	}
	if _, err := messages(newPath(t)); !os.IsNotExist(err) {
		t.Errorf("missing file: %v", err)
	}
}
