package langgraph

import (
	"encoding/json"
	"strings"
)

// Message is a message in the form that LangChain writes: of type human, ai, tool or
// system.
type Message struct {
	Type       string     `json:"type"`
	ID         string     `json:"id,omitempty"`
	Content    string     `json:"content"`
	Name       string     `json:"name,omitempty"`         // of the tool, in its result
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // of an ai message
	ToolCallID string     `json:"tool_call_id,omitempty"` // of a tool message
	Status     string     `json:"status,omitempty"`       // of a tool message: success or error
}

// ToolCall is a call in an ai message.
type ToolCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
	Type string         `json:"type"` // tool_call
}

// The types of messages.
const (
	Human  = "human"
	AI     = "ai"
	Tool   = "tool"
	System = "system"
)

// maxMessages is how many messages of a state are read, the newest.
const maxMessages = 10_000

// readMessages reads the messages of a state that have a text or calls. It leaves out
// values of other forms: graphs put into their states what they like.
func readMessages(raw []json.RawMessage) (messages []Message) {
	if len(raw) > maxMessages {
		raw = raw[len(raw)-maxMessages:]
	}
	for _, r := range raw {
		var w struct {
			Type       string          `json:"type"`
			Role       string          `json:"role"`
			ID         any             `json:"id"`
			Content    json.RawMessage `json:"content"`
			Name       any             `json:"name"`
			ToolCalls  json.RawMessage `json:"tool_calls"`
			ToolCallID any             `json:"tool_call_id"`
			Status     any             `json:"status"`
		}
		if json.Unmarshal(r, &w) != nil {
			continue
		}
		m := Message{Type: typeOf(w.Type, w.Role), ID: str(w.ID), Content: contentOf(w.Content), Name: str(w.Name), ToolCallID: str(w.ToolCallID), Status: str(w.Status)}
		if m.Type == "" {
			continue
		}
		_ = json.Unmarshal(w.ToolCalls, &m.ToolCalls) // none where they have another form
		messages = append(messages, m)
	}
	return messages
}

func str(v any) string { s, _ := v.(string); return s }

// typeOf is the type of a message by LangChain's name, or by the role that it is written
// with in requests. Chunks are what an unfinished stream left.
func typeOf(kind, role string) string {
	if kind == "" {
		kind = role
	}
	switch strings.ToLower(strings.TrimSuffix(kind, "MessageChunk")) {
	case Human, "user":
		return Human
	case AI, "assistant":
		return AI
	case Tool, "function":
		return Tool
	case System, "developer":
		return System
	}
	return ""
}

// contentOf is the text of a content: a string, or blocks of which those of text count.
func contentOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(raw, &blocks) // none where it is something else
	var texts []string
	for _, b := range blocks {
		if text := blockText(b); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// blockText is the text of a block, or what kind of block it is.
func blockText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	switch {
	case json.Unmarshal(raw, &block) != nil:
		return ""
	case block.Text == "" && block.Type != "":
		return "[" + plain(block.Type) + "]"
	}
	return block.Text
}
