package scripted

import (
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// openaiProtocol is the Chat Completions API.
type openaiProtocol struct{}

type openaiMessage struct {
	Role       string  `json:"role"`
	Content    content `json:"content"`
	Reasoning  string  `json:"reasoning_content"`
	ToolCallID string  `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (openaiProtocol) decode(body []byte) (*request, error) {
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []openaiMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if !in.Stream {
		return nil, errNoStream
	}
	out := &request{Model: in.Model, body: body}
	for _, tool := range in.Tools {
		out.Tools = append(out.Tools, tool.Function.Name)
	}
	for _, message := range in.Messages {
		out.addOpenAI(message)
	}
	return out, nil
}

// addOpenAI adds a message; tool results that follow each other belong to one
// user message, as in the other protocol.
func (r *request) addOpenAI(m openaiMessage) {
	text := m.Content.text
	switch m.Role {
	case "system", "developer":
		r.System += text
	case "assistant":
		message := llm.Message{Role: llm.Assistant}
		if m.Reasoning != "" {
			message.Blocks = append(message.Blocks, llm.Block{Type: llm.ReasoningBlock, Text: m.Reasoning})
		}
		if text != "" {
			message.Blocks = append(message.Blocks, llm.Block{Type: llm.TextBlock, Text: text})
		}
		for _, call := range m.ToolCalls {
			message.Blocks = append(message.Blocks, llm.Block{
				Type: llm.ToolUseBlock, ToolCallID: call.ID, ToolName: call.Function.Name,
				Input: json.RawMessage(call.Function.Arguments),
			})
		}
		r.Messages = append(r.Messages, message)
	case "tool":
		r.addResult(m.ToolCallID, text)
	default:
		r.addWords(m.Content)
	}
}

func (openaiProtocol) events(a answer) [][]byte {
	var out [][]byte
	add := func(delta object, finish any) {
		out = append(out, event("", a.openaiChunk([]any{
			object{"index": 0, "delta": delta, "finish_reason": finish},
		}, nil)))
	}
	add(object{"role": "assistant", "content": ""}, nil)
	for _, piece := range pieces(a.reasoning) {
		add(object{"reasoning_content": piece}, nil)
	}
	for _, piece := range pieces(a.text) {
		add(object{"content": piece}, nil)
	}
	for i, call := range a.calls {
		add(object{"tool_calls": []any{object{
			"index": i, "id": call.id, "type": "function", "function": object{"name": call.name, "arguments": ""},
		}}}, nil)
		for _, piece := range pieces(string(call.input)) {
			add(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	add(object{}, openaiStop(a.stop))
	u := a.usage
	prompt := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	out = append(out, event("", a.openaiChunk([]any{}, object{
		"prompt_tokens": prompt, "completion_tokens": u.OutputTokens, "total_tokens": prompt + u.OutputTokens,
		"prompt_tokens_details": object{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
	})))
	return append(out, []byte("data: [DONE]\n\n"))
}

func (a answer) openaiChunk(choices []any, usage any) object {
	return object{
		"id": "chatcmpl-" + a.id, "object": "chat.completion.chunk", "created": 0, "model": a.model,
		"choices": choices, "usage": usage,
	}
}

func openaiStop(reason llm.StopReason) string {
	switch reason {
	case llm.StopEnd:
		return "stop"
	case llm.StopToolUse:
		return "tool_calls"
	case llm.StopMaxTokens:
		return "length"
	case llm.StopRefusal:
		return "content_filter"
	case llm.StopFailed:
		return failedWord
	case llm.StopOther:
	}
	return "other" // a word of no vendor, as a new one would be
}

func (openaiProtocol) failure(typ, code, message string) []byte {
	body := object{"type": typ, "message": message, "param": nil, "code": nil}
	if code != "" {
		body["code"] = code
	}
	return encode(object{"error": body})
}

func (p openaiProtocol) failureEvent(typ, code, message string) []byte {
	return event("", json.RawMessage(p.failure(typ, code, message)))
}
