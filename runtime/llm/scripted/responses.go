package scripted

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// responsesProtocol is the Responses API, of which nothing is stored.
type responsesProtocol struct{}

type responsesItem struct {
	Type      string  `json:"type"`
	Role      string  `json:"role"`
	Content   content `json:"content"`
	Summary   content `json:"summary"`
	Encrypted string  `json:"encrypted_content"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Output    content `json:"output"`
}

func (responsesProtocol) decode(body []byte) (*request, error) {
	var in struct {
		Model        string `json:"model"`
		Stream       bool   `json:"stream"`
		Store        *bool  `json:"store"`
		Instructions string `json:"instructions"`
		Tools        []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Input []responsesItem `json:"input"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	switch {
	case !in.Stream:
		return nil, errNoStream
	case in.Store == nil || *in.Store:
		return nil, errors.New("this server stores nothing: send store: false")
	}
	out := &request{Model: in.Model, System: in.Instructions, body: body}
	for _, tool := range in.Tools {
		out.Tools = append(out.Tools, tool.Name)
	}
	if err := checkItems(in.Input); err != nil {
		return nil, err
	}
	for _, item := range in.Input {
		out.addItem(item)
	}
	return out, nil
}

// checkItems refuses what the vendor refuses: reasoning that nothing of the model
// follows, or that was not sent whole, and results of calls that were not made.
func checkItems(items []responsesItem) error {
	called := map[string]bool{}
	for i, item := range items {
		switch item.Type {
		case "reasoning":
			if item.Encrypted == "" {
				return fmt.Errorf("input.%d: the item is not stored, and has no encrypted_content", i)
			}
			if i+1 == len(items) || items[i+1].Role == "user" || items[i+1].Type == "function_call_output" {
				return fmt.Errorf("input.%d: reasoning was provided without its required following item", i)
			}
		case "function_call":
			called[item.CallID] = true
		case "function_call_output":
			if !called[item.CallID] {
				return fmt.Errorf("input.%d: no tool call found for function call output with call_id %s", i, item.CallID)
			}
		}
	}
	return nil
}

// addItem adds an item to the message it belongs to: what the model has thought, said
// and called between two messages of the user is one answer.
func (r *request) addItem(item responsesItem) {
	switch text := item.Content.text; {
	case item.Type == "reasoning":
		r.add(llm.Assistant, llm.Block{Type: llm.ReasoningBlock, Text: item.Summary.text, Signature: item.Encrypted})
	case item.Type == "function_call":
		r.add(llm.Assistant, llm.Block{
			Type: llm.ToolUseBlock, ToolCallID: item.CallID, ToolName: item.Name, Input: json.RawMessage(item.Arguments),
		})
	case item.Type == "function_call_output":
		r.addResult(item.CallID, item.Output.text)
	case item.Role == "assistant":
		r.add(llm.Assistant, llm.Block{Type: llm.TextBlock, Text: text})
	case item.Role == "system" || item.Role == "developer":
		r.System += text
	default:
		r.addWords(item.Content)
	}
}

func (responsesProtocol) events(a answer) [][]byte {
	s := responsesStream{answer: a}
	s.about("response.created", "in_progress")
	if a.reasoning != "" {
		item := object{"type": "reasoning", "id": "rs_" + a.id, "summary": []any{}}
		part := object{"type": "summary_text", "text": a.reasoning}
		s.item(item, object{"summary": []any{part}, "encrypted_content": "enc_" + a.id},
			"response.reasoning_summary_text.delta", a.reasoning)
	}
	if a.text != "" {
		item := object{"type": "message", "id": "msg_" + a.id, "role": "assistant", "content": []any{}}
		part := object{"type": "output_text", "text": a.text, "annotations": []any{}}
		s.item(item, object{"content": []any{part}}, "response.output_text.delta", a.text)
	}
	for i, call := range a.calls {
		item := object{"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", a.id, i), "call_id": call.id, "name": call.name, "arguments": ""}
		s.item(item, object{"arguments": string(call.input)}, "response.function_call_arguments.delta", string(call.input))
	}
	switch a.stop {
	case llm.StopMaxTokens:
		s.incomplete("max_output_tokens")
	case llm.StopRefusal:
		s.incomplete("content_filter")
	case llm.StopFailed:
		s.incomplete(failedWord)
	case llm.StopOther:
		s.incomplete("other") // a word of no vendor, as a new one would be
	case llm.StopEnd, llm.StopToolUse:
		s.about("response.completed", "completed")
	}
	return s.events
}

// responsesStream collects events.
type responsesStream struct {
	answer answer
	output []any
	events [][]byte
	more   object // of what is said about the whole answer
}

func (s *responsesStream) add(name string, data object) {
	data["type"], data["sequence_number"] = name, len(s.events)
	s.events = append(s.events, event(name, data))
}

// about adds an event about the whole answer.
func (s *responsesStream) about(name, status string) {
	body := object{
		"id": "resp_" + s.answer.id, "object": "response", "created_at": 0, "model": s.answer.model,
		"status": status, "output": s.output, "error": nil, "incomplete_details": nil, "usage": nil,
	}
	for key, value := range s.more {
		body[key] = value
	}
	if u := s.answer.usage; status != "in_progress" {
		input := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
		body["usage"] = object{
			"input_tokens": input, "output_tokens": u.OutputTokens, "total_tokens": input + u.OutputTokens,
			"input_tokens_details":  object{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
			"output_tokens_details": object{"reasoning_tokens": 0},
		}
	}
	s.add(name, object{"response": body})
}

func (s *responsesStream) incomplete(reason string) {
	s.more = object{"incomplete_details": object{"reason": reason}}
	s.about("response.incomplete", "incomplete")
}

// item adds an item that comes in pieces: its beginning, deltas of a text, and the
// whole, which has more than the beginning.
func (s *responsesStream) item(begins, more object, deltas, text string) {
	index := len(s.output)
	s.add("response.output_item.added", object{"output_index": index, "item": begins})
	for _, piece := range pieces(text) {
		s.add(deltas, object{"output_index": index, "item_id": begins["id"], "delta": piece})
	}
	whole := object{"status": "completed"}
	for _, part := range []object{begins, more} {
		for key, value := range part {
			whole[key] = value
		}
	}
	s.add("response.output_item.done", object{"output_index": index, "item": whole})
	s.output = append(s.output, whole)
}

func (responsesProtocol) failure(typ, code, message string) []byte {
	return openaiProtocol{}.failure(typ, code, message)
}

func (responsesProtocol) failureEvent(typ, code, message string) []byte {
	if code == "" {
		code = typ // an event has no type of its own
	}
	return event("error", object{"type": "error", "code": code, "message": message, "param": nil})
}
