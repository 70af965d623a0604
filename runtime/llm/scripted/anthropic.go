package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// anthropicProtocol is the Messages API.
type anthropicProtocol struct{}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   content         `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    imageSource     `json:"source"`
}

func (anthropicProtocol) decode(body []byte) (*request, error) {
	var in struct {
		Model  string  `json:"model"`
		Stream bool    `json:"stream"`
		System content `json:"system"`
		Tools  []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Messages []struct {
			Role    llm.Role        `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if !in.Stream {
		return nil, errNoStream
	}
	out := &request{Model: in.Model, System: in.System.text, body: body}
	for _, tool := range in.Tools {
		out.Tools = append(out.Tools, tool.Name)
	}
	for i, message := range in.Messages {
		blocks, err := anthropicBlocks(message.Content)
		if err != nil {
			return nil, fmt.Errorf("messages.%d.content: %w", i, err)
		}
		out.Messages = append(out.Messages, llm.Message{Role: message.Role, Blocks: blocks})
	}
	return out, nil
}

func anthropicBlocks(raw json.RawMessage) ([]llm.Block, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []llm.Block{{Type: llm.TextBlock, Text: text}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, err
	}
	var out []llm.Block
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, llm.Block{Type: llm.TextBlock, Text: b.Text})
		case "thinking":
			out = append(out, llm.Block{Type: llm.ReasoningBlock, Text: b.Thinking, Signature: b.Signature})
		case "tool_use":
			out = append(out, llm.Block{Type: llm.ToolUseBlock, ToolCallID: b.ID, ToolName: b.Name, Input: b.Input})
		case "tool_result":
			out = append(out, llm.Block{
				Type: llm.ToolResultBlock, ToolCallID: b.ToolUseID, Text: b.Content.text, IsError: b.IsError,
				Images: b.Content.images,
			})
		case "image":
			out = append(out, llm.Block{Type: llm.ImageBlock, Images: []llm.Image{b.Source.image()}})
		}
	}
	return out, nil
}

func (anthropicProtocol) events(a answer) [][]byte {
	stream := anthropicStream{}
	stream.add(object{"type": "message_start", "message": object{
		"id": "msg_" + a.id, "type": "message", "role": "assistant", "model": a.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{
			"input_tokens": a.usage.InputTokens, "output_tokens": 1,
			"cache_read_input_tokens":     a.usage.CacheReadTokens,
			"cache_creation_input_tokens": a.usage.CacheWriteTokens,
		},
	}})
	if a.reasoning != "" {
		stream.block(object{"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", a.reasoning,
			object{"type": "signature_delta", "signature": "sig_" + a.id})
	}
	if a.text != "" {
		stream.block(object{"type": "text", "text": ""}, "text_delta", "text", a.text)
	}
	for _, call := range a.calls {
		stream.block(object{"type": "tool_use", "id": call.id, "name": call.name, "input": object{}},
			"input_json_delta", "partial_json", string(call.input))
	}
	stream.add(object{"type": "message_delta",
		"delta": object{"stop_reason": anthropicStop(a.stop), "stop_sequence": nil},
		"usage": object{"output_tokens": a.usage.OutputTokens}})
	stream.add(object{"type": "message_stop"})
	return stream.events
}

// anthropicStream collects events.
type anthropicStream struct {
	events [][]byte
	index  int // of the next content block
}

func (s *anthropicStream) add(data object) {
	s.events = append(s.events, event(fmt.Sprint(data["type"]), data))
}

// block adds a content block whose text comes in pieces, each as the field of a
// delta of the given kind, followed by further deltas.
func (s *anthropicStream) block(start object, kind, field, text string, more ...object) {
	s.add(object{"type": "content_block_start", "index": s.index, "content_block": start})
	for _, piece := range pieces(text) {
		s.add(object{"type": "content_block_delta", "index": s.index, "delta": object{"type": kind, field: piece}})
	}
	for _, delta := range more {
		s.add(object{"type": "content_block_delta", "index": s.index, "delta": delta})
	}
	s.add(object{"type": "content_block_stop", "index": s.index})
	s.index++
}

func anthropicStop(reason llm.StopReason) string {
	switch reason {
	case llm.StopEnd:
		return "end_turn"
	case llm.StopToolUse, llm.StopMaxTokens, llm.StopRefusal: // the vendor's words too
		return string(reason)
	case llm.StopFailed:
		return failedWord
	case llm.StopOther:
	}
	return "pause_turn"
}

func (anthropicProtocol) failure(typ, _, message string) []byte {
	return encode(object{"type": "error", "error": object{"type": typ, "message": message}})
}

func (p anthropicProtocol) failureEvent(typ, code, message string) []byte {
	return event("error", json.RawMessage(p.failure(typ, code, message)))
}
