package loop

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// A provider declared as "tool_use: text" has models that cannot call tools
// through its protocol. They are told to write a call into their answer as a
// fenced block of JSON,
//
//	```json
//	{"tool": "rye_file_system_read", "arguments": {"path": "go.mod"}}
//	```
//
// and are given results as text. That is so on the wire only: conversation and
// transcript hold such calls and results as blocks like any other.

const toolPreamble = "# Tools\n\n" +
	"You can call the tools below. To call one, write a fenced block of JSON like this into your answer:\n\n" +
	"```json\n{\"tool\": \"name\", \"arguments\": {}}\n```\n\n" +
	"Several blocks are several calls, which run at the same time. End your answer after the last block; the results are " +
	"the next message. An answer without such a block is taken as your final one. To show such a block without calling " +
	"anything, fence it with four backquotes."

// toolInstructions is what the system prompt says about tools; empty without
// any.
func toolInstructions(tools []llm.Tool) string {
	if len(tools) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(toolPreamble)
	for _, t := range tools {
		fmt.Fprintf(&b, "\n\n## %s\n\n%s\n\nJSON Schema of the arguments: %s", t.Name, t.Description, t.Schema)
	}
	return b.String()
}

// textTalk is the conversation as a model is shown it that cannot call tools.
// What was shown stays what it was, so that it is recognised as sent before.
type textTalk struct {
	talk, shown []llm.Message     // message by message
	names       map[string]string // of the tools called, by call id
}

// inText is the request with instructions in place of tools, and calls and
// results as text.
func (t *textTalk) inText(req llm.Request, instructions string) llm.Request {
	req.Tools = nil
	if req.System != "" {
		req.System += "\n\n"
	}
	req.System += instructions
	req.Messages = t.show(req.Messages)
	return req
}

func (t *textTalk) show(messages []llm.Message) []llm.Message {
	if t.names == nil {
		t.names = map[string]string{}
	}
	same := 0
	for same < min(len(t.talk), len(messages)) && sameMessage(t.talk[same], messages[same]) {
		same++
	}
	t.talk, t.shown = t.talk[:same:same], t.shown[:same:same]
	for _, m := range messages[same:] {
		t.talk = append(t.talk, m)
		t.shown = append(t.shown, llm.Message{Role: m.Role, Blocks: blocksInText(m.Blocks, t.names)})
	}
	return t.shown
}

// sameMessage recognises a message by its blocks, which nobody changes.
func sameMessage(a, b llm.Message) bool {
	return a.Role == b.Role && len(a.Blocks) == len(b.Blocks) && (len(a.Blocks) == 0 || &a.Blocks[0] == &b.Blocks[0])
}

func blocksInText(blocks []llm.Block, names map[string]string) []llm.Block {
	var out []llm.Block
	for _, b := range blocks {
		switch b.Type {
		case llm.ToolUseBlock:
			names[b.ToolCallID] = b.ToolName
			b = llm.Block{Type: llm.TextBlock, Text: fence(b)}
		case llm.ToolResultBlock:
			what := "Result of "
			if b.IsError {
				what = "Error of "
			}
			out = append(out, llm.Block{Type: llm.TextBlock, Text: what + names[b.ToolCallID] + ":\n" + b.Text})
			if len(b.Images) == 0 {
				continue
			}
			b = llm.Block{Type: llm.ImageBlock, Images: b.Images}
		}
		out = append(out, b)
	}
	return out
}

// fence writes a call in the form it is read in.
func fence(c llm.Block) string {
	name, err := json.Marshal(c.ToolName)
	if err != nil { // a string always encodes
		name = []byte(`""`)
	}
	return fmt.Sprintf("```json\n{\"tool\": %s, \"arguments\": %s}\n```", name, wire.SentBack(c.Input))
}
