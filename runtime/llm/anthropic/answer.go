package anthropic

import (
	"encoding/json"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// redactedPrefix marks the signature of a reasoning block that the API sent
// encrypted as a whole ("redacted_thinking"); its data follows.
const redactedPrefix = "redacted_thinking:"

// maxBlocks bounds what an index in the stream can make us allocate.
const maxBlocks = 10_000

// answer collects the events of one answer. The library could do that as well,
// but not when a model writes input that is no JSON.
type answer struct {
	sink  func(llm.Delta)
	model string
	usage llm.Usage
	// miscounted: a number of the usage was none, or negative.
	miscounted bool
	stop       sdk.StopReason
	complete   bool
	blocks     []block
}

// block is a content block being received.
type block struct {
	llm.Block
	// seed is an input that came whole with the start of the block.
	seed json.RawMessage
	// said is the text, to which appending again and again costs little.
	said []byte
	// signed is the signature, likewise.
	signed []byte
}

// add takes the next event. Unknown events and deltas are ignored, as the API's
// versioning policy asks for.
func (a *answer) add(e event) error {
	switch e.kind {
	case "message_start":
		a.model, a.usage = e.model, llm.Usage{Reported: e.hasUsage}
		a.count(&a.usage.OutputTokens, e.usage.output)
		a.countInput(e.usage)
		if metered := a.metered(); metered.Reported {
			a.emit(llm.Delta{Usage: &metered})
		}
	case "content_block_start":
		return a.start(e.index, e.part, e.input)
	case "content_block_delta":
		return a.extend(e.index, e.part)
	case "message_delta":
		a.stop = e.stop
		a.usage.Reported = a.count(&a.usage.OutputTokens, e.usage.output) || a.usage.Reported
		a.countInput(e.usage)
	case "message_stop":
		a.complete = true
	}
	return nil
}

// start begins a block. Input is that of a call whose input comes whole, raw.
func (a *answer) start(index int64, start part, input string) error {
	if index < 0 || index >= maxBlocks {
		return fmt.Errorf("content block %d is out of range", index)
	}
	for int64(len(a.blocks)) <= index {
		a.blocks = append(a.blocks, block{})
	}
	b := &a.blocks[index]
	switch start.kind {
	case "text":
		b.Type = llm.TextBlock
		a.text(b, start.text)
	case "thinking":
		b.Type, b.signed = llm.ReasoningBlock, []byte(start.signature)
		a.text(b, start.thinking)
	case "redacted_thinking":
		b.Type, b.signed = llm.ReasoningBlock, []byte(redactedPrefix+start.data)
	case "tool_use":
		b.Type, b.ToolCallID, b.ToolName = llm.ToolUseBlock, start.id, start.name
		b.seed = json.RawMessage(input)
		a.emit(llm.Delta{Type: llm.ToolUseBlock, Text: start.name})
	}
	return nil
}

func (a *answer) extend(index int64, delta part) error {
	if index < 0 || index >= int64(len(a.blocks)) {
		return fmt.Errorf("a piece of content block %d came before its start", index)
	}
	b := &a.blocks[index]
	switch delta.kind {
	case "text_delta":
		a.text(b, delta.text)
	case "thinking_delta":
		a.text(b, delta.thinking)
	case "signature_delta":
		b.signed = append(b.signed, delta.signature...)
	case "input_json_delta":
		b.Input = append(b.Input, delta.json...)
		a.emit(llm.Delta{Type: llm.ToolUseBlock, Hidden: len(delta.json)})
	}
	return nil
}

func (a *answer) text(b *block, text string) {
	if text == "" || b.Type == "" {
		return
	}
	b.said = append(b.said, text...)
	a.emit(llm.Delta{Type: b.Type, Text: text})
}

func (a *answer) emit(delta llm.Delta) {
	if a.sink != nil {
		a.sink(delta)
	}
}

// count takes over a number as the provider wrote it. One that is missing leaves
// what is known, as the totals at the end do with those of the start.
func (a *answer) count(to *int64, raw string) (given bool) {
	n, given, ok := wire.Count(raw)
	if given {
		*to = n
	}
	a.miscounted = a.miscounted || !ok
	return given
}

func (a *answer) countInput(u usage) {
	a.count(&a.usage.InputTokens, u.input)
	a.count(&a.usage.CacheReadTokens, u.cacheRead)
	a.count(&a.usage.CacheWriteTokens, u.cacheWrite)
}

// metered is what the provider has counted. Where one number makes no sense,
// nothing was reported.
func (a *answer) metered() llm.Usage {
	u := a.usage
	u.Reported = u.Reported && !a.miscounted
	return u
}

// partial is what is known of an answer that failed.
func (a *answer) partial() llm.Response {
	return llm.Response{Model: a.model, StopReason: llm.StopOther, Usage: a.metered()}
}

func (a *answer) response() llm.Response {
	out := llm.Response{Model: a.model, Usage: a.metered()}
	out.StopReason, out.StopWord = stopReason(a.stop)
	for _, b := range a.blocks {
		b.Text, b.Signature = string(b.said), string(b.signed)
		switch {
		case b.Type == "", b.Type == llm.TextBlock && b.Text == "":
			continue
		case b.Type == llm.ToolUseBlock && len(b.Input) == 0:
			b.Input = b.seed
			if len(b.Input) == 0 {
				b.Input = json.RawMessage("{}")
			}
		}
		out.Blocks = append(out.Blocks, b.Block)
	}
	return out
}

// stopReason is why the model stopped, with the vendor's word for it. Servers of
// others that speak this protocol have other words too. "pause_turn" belongs to tools
// of the server's, which are never offered.
func stopReason(word sdk.StopReason) (llm.StopReason, string) {
	if word == sdk.StopReasonToolUse {
		return llm.StopToolUse, ""
	}
	return wire.Stop(string(word))
}
