package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// betweenParts stands between the parts of a text.
const betweenParts = "\n\n"

// said is what an item says: the text of a message, what was thought, or the arguments
// of a call.
func (i responseItem) said() string {
	if i.Type == itemCall {
		return i.Arguments
	}
	parts, between := i.Content, ""
	if i.Type == itemReasoning {
		parts, between = slices.Concat(i.Summary, i.Content), betweenParts
	}
	var texts []string
	for _, part := range parts {
		if text := cmp.Or(part.Text, part.Refusal); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, between)
}

// text is what has arrived of an item.
func (r receivedItem) text() string {
	if r.whole {
		return r.said()
	}
	return string(r.streamed)
}

// partial is what is known of an answer that failed.
func (a *responseAnswer) partial() llm.Response {
	return llm.Response{Model: a.body.Model, StopReason: llm.StopOther, Usage: a.usage}
}

func (a *responseAnswer) response() llm.Response {
	out := llm.Response{Model: a.body.Model, Usage: a.usage}
	out.StopReason, out.StopWord = a.stopReason()
	for n, item := range a.items {
		switch text := item.text(); {
		case item.Type == itemReasoning:
			if signature := item.signature(); text != "" || signature != "" {
				out.Blocks = append(out.Blocks, llm.Block{Type: llm.ReasoningBlock, Text: text, Signature: signature})
			}
		case item.Type == itemMessage && text != "":
			block := llm.Block{Type: llm.TextBlock, Text: text}
			if item.Phase != "" {
				block.Signature = phasePrefix + item.Phase
			}
			out.Blocks = append(out.Blocks, block)
		case item.Type == itemCall:
			out.Blocks = append(out.Blocks, llm.Block{
				Type: llm.ToolUseBlock, ToolName: item.Name, Input: json.RawMessage(cmp.Or(text, "{}")),
				ToolCallID: cmp.Or(item.CallID, item.ID, fmt.Sprintf("%s-%d", a.body.ID, n)),
			})
		}
	}
	return out
}

// signature is what was thought as it is to be sent back; empty when the provider could
// make nothing of it: it keeps no thoughts itself.
func (r receivedItem) signature() string {
	if !r.whole || r.Encrypted == "" && len(r.Content) == 0 {
		return ""
	}
	back := reasoningItem{Type: itemReasoning, ID: r.ID, Summary: r.Summary, Content: r.Content, Encrypted: r.Encrypted}
	if back.Summary == nil {
		back.Summary = []contentPart{}
	}
	encoded, err := json.Marshal(back)
	if err != nil { // strings always encode
		return ""
	}
	return string(encoded)
}

// stopReason is why the model stopped, with the vendor's word for it.
func (a *responseAnswer) stopReason() (reason llm.StopReason, word string) {
	calls := slices.ContainsFunc(a.items, func(i receivedItem) bool { return i.Type == itemCall })
	refused := a.refused || slices.ContainsFunc(a.items, func(i receivedItem) bool {
		return slices.ContainsFunc(i.Content, func(p contentPart) bool { return p.Type == "refusal" })
	})
	broken := a.body.Status != "completed" && a.body.Status != ""
	if broken {
		reason, word = wire.Stop(cmp.Or(a.body.Incomplete.Reason, a.body.Status))
	}
	switch {
	case broken && reason != llm.StopEnd && reason != llm.StopOther:
		return reason, word
	case refused:
		return llm.StopRefusal, ""
	case broken:
		return llm.StopOther, word
	case calls:
		return llm.StopToolUse, ""
	}
	return llm.StopEnd, ""
}

// responseUsage reads what the provider says: the names differ from those of Chat
// Completions, the counting does not.
func responseUsage(raw json.RawMessage) llm.Usage {
	var said struct {
		Input   json.RawMessage `json:"input_tokens"`
		Output  json.RawMessage `json:"output_tokens"`
		Total   json.RawMessage `json:"total_tokens"`
		Details json.RawMessage `json:"input_tokens_details"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return llm.Usage{}
	}
	return usage{Prompt: said.Input, Completion: said.Output, Total: said.Total, Details: said.Details}.neutral()
}
