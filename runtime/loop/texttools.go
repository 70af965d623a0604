package loop

import (
	"encoding/json"
	"fmt"
	"regexp"
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
	"the next message. An answer without such a block is taken as your final one."

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

// inText is the request with instructions in place of tools, and calls and
// results as text.
func inText(req llm.Request, instructions string) llm.Request {
	req.Tools = nil
	if req.System != "" {
		req.System += "\n\n"
	}
	req.System += instructions
	names := map[string]string{} // of the tools called, by call id
	messages := make([]llm.Message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = llm.Message{Role: m.Role, Blocks: blocksInText(m.Blocks, names)}
	}
	req.Messages = messages
	return req
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
			b = llm.Block{Type: llm.TextBlock, Text: what + names[b.ToolCallID] + ":\n" + b.Text}
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

// readCalls is the answer with the calls that stand in its text as blocks of
// their own, in the order they were written.
func readCalls(a llm.Response, turn int) llm.Response {
	var blocks []llm.Block
	calls := 0
	for _, b := range a.Blocks {
		if b.Type != llm.TextBlock {
			blocks = append(blocks, b)
			continue
		}
		for _, part := range splitCalls(b.Text) {
			if part.Type == llm.ToolUseBlock {
				part.ToolCallID = fmt.Sprintf("text_%d_%d", turn, calls)
				calls++
			}
			blocks = append(blocks, part)
		}
	}
	a.Blocks = blocks
	if calls > 0 && a.StopReason == llm.StopEnd {
		a.StopReason = llm.StopToolUse
	}
	return a
}

// splitCalls divides a text into the calls it contains and the text between
// them. A fence that never ends reaches to the end of the text.
func splitCalls(text string) []llm.Block {
	var out []llm.Block
	var prose strings.Builder
	endProse := func() {
		if s := strings.TrimSpace(prose.String()); s != "" {
			out = append(out, llm.Block{Type: llm.TextBlock, Text: s})
		}
		prose.Reset()
	}
	for rest := text; rest != ""; {
		line, after := cutLine(rest)
		marks, info := fenceOf(line)
		if marks == 0 {
			prose.WriteString(line)
			rest = after
			continue
		}
		body, end := fenced(after, marks)
		call, isCall := llm.Block{}, false
		if strings.EqualFold(info, "json") {
			call, isCall = readCall(body)
		}
		if isCall {
			endProse()
			out = append(out, call)
		} else {
			prose.WriteString(rest[:len(rest)-len(end)])
		}
		rest = end
	}
	endProse()
	return out
}

// cutLine divides a text after its first line end.
func cutLine(text string) (line, rest string) {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}

// minFence is the number of backquotes a fence has at least (CommonMark 4.5).
const minFence = 3

// fenceOf is the number of backquotes of a line that begins or ends a fence, 0
// for any other, and the word after them.
func fenceOf(line string) (marks int, info string) {
	line = strings.TrimSpace(line)
	info = strings.TrimLeft(line, "`")
	marks = len(line) - len(info)
	if marks < minFence || strings.Contains(info, "`") {
		return 0, ""
	}
	return marks, strings.TrimSpace(info)
}

// fenced divides what comes after the first line of a fence into its content
// and what follows its last line.
func fenced(text string, marks int) (body, after string) {
	for rest := text; rest != ""; {
		line, next := cutLine(rest)
		if n, info := fenceOf(line); n >= marks && info == "" {
			return text[:len(text)-len(rest)], next
		}
		rest = next
	}
	return text, ""
}

// brokenCall finds the name in what was meant as a call but is not JSON.
var brokenCall = regexp.MustCompile(`^\s*\{\s*"tool"\s*:\s*"([^"\\]+)"`)

// readCall reads the content of a fence. Other JSON than a call is none; a call
// that is not valid JSON keeps its text as input, so that the model is told.
func readCall(body string) (llm.Block, bool) {
	var c struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if !json.Valid([]byte(body)) {
		m := brokenCall.FindStringSubmatch(body)
		if m == nil {
			return llm.Block{}, false
		}
		return llm.Block{Type: llm.ToolUseBlock, ToolName: m[1], Input: json.RawMessage(body)}, true
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil || c.Tool == "" {
		return llm.Block{}, false
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	return llm.Block{Type: llm.ToolUseBlock, ToolName: c.Tool, Input: c.Arguments}, true
}
