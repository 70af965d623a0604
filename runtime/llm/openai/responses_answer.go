package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// responseEvent is one event of an answer. Fields that only some kinds of event have
// are read when the kind is known: new kinds come without notice.
type responseEvent struct {
	Type         string          `json:"type"`
	Error        json.RawMessage `json:"error"`
	Code         json.RawMessage `json:"code"`
	Message      json.RawMessage `json:"message"`
	Response     json.RawMessage `json:"response"`
	Item         json.RawMessage `json:"item"`
	ItemID       json.RawMessage `json:"item_id"`
	OutputIndex  json.RawMessage `json:"output_index"`
	SummaryIndex json.RawMessage `json:"summary_index"`
	Delta        json.RawMessage `json:"delta"`
}

// responseBody is what the events about the whole answer carry.
type responseBody struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Status     string          `json:"status"`
	Error      json.RawMessage `json:"error"`
	Usage      json.RawMessage `json:"usage"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []responseItem `json:"output"`
}

// responseItem is an item of an answer.
type responseItem struct {
	Type      string        `json:"type"`
	ID        string        `json:"id"`
	Summary   []contentPart `json:"summary"` // of reasoning
	Content   []contentPart `json:"content"` // of reasoning and messages
	Encrypted string        `json:"encrypted_content"`
	Phase     string        `json:"phase"`   // of messages
	CallID    string        `json:"call_id"` // of calls, with the next two
	Name      string        `json:"name"`
	Arguments string        `json:"arguments"`
}

type contentPart struct {
	Type    string `json:"type"`
	Text    string `json:"text,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// The kinds of item that matter here; no others were asked for.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	itemCall      = "function_call"
)

// responseAnswer collects the events of one answer.
type responseAnswer struct {
	sink     func(llm.Delta)
	body     responseBody
	usage    llm.Usage
	items    []receivedItem
	refused  bool
	complete bool
}

// receivedItem is an item being received.
type receivedItem struct {
	responseItem
	index    int    // in the output
	streamed []byte // text or arguments that came in pieces
	whole    bool   // the item came once more, in one piece
}

// add takes the next event.
func (a *responseAnswer) add(exchange *wire.Call, raw []byte) error {
	var e responseEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return wire.Malformed(fmt.Errorf("event of the answer: %w", err))
	}
	switch e.Type {
	case "", "error":
		return a.failure(exchange, raw, e)
	case "response.created", "response.in_progress", "response.queued":
		return a.about(e.Response)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return a.end(exchange, e)
	case "response.output_item.added", "response.output_item.done":
		return a.item(exchange, e)
	}
	return a.piece(exchange, e)
}

// failure is an event that says what went wrong, on its own or below error.
func (a *responseAnswer) failure(exchange *wire.Call, raw []byte, e responseEvent) error {
	if present(e.Error) {
		return exchange.StreamError(raw)
	}
	if e.Type == "" && !present(e.Message) {
		return wire.Malformed(errors.New("an event of the answer has no type"))
	}
	return exchange.StreamError(encodedError(e.Code, e.Message))
}

func encodedError(code, message json.RawMessage) []byte {
	if !present(code) {
		code = json.RawMessage("null")
	}
	if !present(message) {
		message = json.RawMessage("null")
	}
	return fmt.Appendf(nil, `{"error":{"code":%s,"message":%s}}`, code, message)
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// about reads what an event says of the whole answer.
func (a *responseAnswer) about(raw json.RawMessage) error {
	if !present(raw) {
		return nil
	}
	body := responseBody{ID: a.body.ID, Model: a.body.Model}
	if err := json.Unmarshal(raw, &body); err != nil {
		return wire.Malformed(fmt.Errorf("event of the answer: %w", err))
	}
	a.body = body
	if present(body.Usage) {
		a.usage = responseUsage(body.Usage)
	}
	return nil
}

// end takes the last event: the answer is whole, was broken off, or has failed.
func (a *responseAnswer) end(exchange *wire.Call, e responseEvent) error {
	if err := a.about(e.Response); err != nil {
		return err
	}
	if present(a.body.Error) || e.Type == "response.failed" {
		if !present(a.body.Error) {
			a.body.Error = json.RawMessage(`{"code":"server_error","message":"the provider says that the answer failed, and not why"}`)
		}
		return exchange.StreamError(fmt.Appendf(nil, `{"error":%s}`, a.body.Error))
	}
	if e.Type == "response.cancelled" {
		return wire.ErrCut
	}
	for i, item := range a.body.Output { // of servers that send no events of items
		if err := a.settle(exchange, i, item); err != nil {
			return err
		}
	}
	a.complete = true
	return exchange.Content(0)
}

// item takes the beginning of an item, or the item in one piece.
func (a *responseAnswer) item(exchange *wire.Call, e responseEvent) error {
	var item responseItem
	if err := json.Unmarshal(e.Item, &item); err != nil {
		return wire.Malformed(fmt.Errorf("item of the answer: %w", err))
	}
	index := number(e.OutputIndex)
	if e.Type == "response.output_item.done" {
		return a.settle(exchange, index, item)
	}
	if _, err := a.receive(index, item); err != nil {
		return wire.Malformed(err)
	}
	return exchange.Content(len(item.Name))
}

// maxItems bounds the items of one answer, far above any real one: the item that a
// piece belongs to is looked for among all of them.
const maxItems = maxCalls

// receive is the item at an index, which begins with this unless it has begun before.
// Some servers give every item the same index.
func (a *responseAnswer) receive(index int, item responseItem) (*receivedItem, error) {
	for i := range slices.Backward(a.items) {
		known := &a.items[i]
		if known.index == index && (item.ID == "" || known.ID == "" || known.ID == item.ID) && (item.Type == "" || known.Type == item.Type) {
			return known, nil
		}
	}
	if len(a.items) == maxItems {
		return nil, fmt.Errorf("the answer has more than %d items", maxItems)
	}
	a.items = append(a.items, receivedItem{responseItem: item, index: index})
	if item.Type == itemCall {
		a.emit(llm.Delta{Type: llm.ToolUseBlock, Text: item.Name})
	}
	return &a.items[len(a.items)-1], nil
}

// settle takes an item in one piece, which says more than the pieces before.
func (a *responseAnswer) settle(exchange *wire.Call, index int, item responseItem) error {
	known, err := a.receive(index, item)
	if err != nil {
		return wire.Malformed(err)
	}
	if known.whole {
		return nil
	}
	known.responseItem, known.whole = item, true
	text := item.said()
	rest, continues := strings.CutPrefix(text, string(known.streamed))
	if continues {
		a.say(known.Type, rest)
	}
	return exchange.Content(max(0, len(text)-len(known.streamed)) + len(item.Encrypted))
}

// piece takes a part of an item.
func (a *responseAnswer) piece(exchange *wire.Call, e responseEvent) error {
	kind := pieceOf(e.Type)
	if kind == "" {
		return nil // of something that was not asked for, or that comes again with the item
	}
	item := responseItem{Type: kind, ID: word(e.ItemID)}
	known, err := a.receive(number(e.OutputIndex), item)
	if err != nil {
		return wire.Malformed(err)
	}
	text := word(e.Delta)
	if e.Type == "response.reasoning_summary_part.added" && len(known.streamed) > 0 {
		text = betweenParts
	}
	known.streamed = append(known.streamed, text...)
	a.refused = a.refused || e.Type == "response.refusal.delta"
	a.say(kind, text)
	return exchange.Content(len(text))
}

// pieceOf is the kind of item that an event brings a part of; empty for others.
func pieceOf(event string) string {
	switch event {
	case "response.output_text.delta", "response.refusal.delta":
		return itemMessage
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_part.added":
		return itemReasoning
	case "response.function_call_arguments.delta":
		return itemCall
	}
	return ""
}

// say passes on what arrived of an item.
func (a *responseAnswer) say(kind, text string) {
	if text == "" {
		return
	}
	switch kind {
	case itemMessage:
		a.emit(llm.Delta{Type: llm.TextBlock, Text: text})
	case itemReasoning:
		a.emit(llm.Delta{Type: llm.ReasoningBlock, Text: text})
	case itemCall:
		a.emit(llm.Delta{Type: llm.ToolUseBlock, Hidden: len(text)})
	}
}

func (a *responseAnswer) emit(delta llm.Delta) {
	if a.sink != nil {
		a.sink(delta)
	}
}

// number is a number of an event, 0 when it is none.
func number(raw json.RawMessage) int {
	var n int
	_ = json.Unmarshal(raw, &n)
	return n
}

// word is a text of an event, empty when it is none.
func word(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
