package openai

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// chunk is one event of an answer, with the members of all the providers this
// client talks to; the library's type knows only OpenAI's and DeepSeek's.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"` // OpenRouter, when a provider behind it fails
	Usage   json.RawMessage `json:"usage"`
	Choices []struct {
		Index        int    `json:"index"`
		FinishReason string `json:"finish_reason"`
		Delta        struct {
			Content          string        `json:"content"`
			Refusal          string        `json:"refusal"`
			ReasoningContent string        `json:"reasoning_content"` // DeepSeek, vLLM, xAI
			Reasoning        string        `json:"reasoning"`         // OpenRouter, Ollama, Groq
			ToolCalls        []callPart    `json:"tool_calls"`
			Extra            *extraContent `json:"extra_content"`
			Details          []detail      `json:"reasoning_details"` // OpenRouter
		} `json:"delta"`
	} `json:"choices"`
}

// callPart is a piece of a tool call.
type callPart struct {
	Index    *int          `json:"index"`
	ID       string        `json:"id"`
	Extra    *extraContent `json:"extra_content"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// usage counts the cached tokens among the prompt tokens. The numbers are as the
// provider wrote them: one that is no number must not spoil an answer that is paid.
type usage struct {
	Prompt     json.RawMessage `json:"prompt_tokens"`
	Completion json.RawMessage `json:"completion_tokens"`
	Total      json.RawMessage `json:"total_tokens"`
	Details    json.RawMessage `json:"prompt_tokens_details"`
}

type usageDetails struct {
	Cached  json.RawMessage `json:"cached_tokens"`
	Written json.RawMessage `json:"cache_write_tokens"` // OpenRouter
}

// usageOf reads what the provider says; a value that is no object reports nothing.
func usageOf(raw json.RawMessage) llm.Usage {
	var u usage
	if json.Unmarshal(raw, &u) != nil {
		return llm.Usage{}
	}
	return u.neutral()
}

// neutral gives every token to exactly one number. Output is the rest of the
// total where that is more than the completion: xAI and Google leave the tokens
// of reasoning out of the completion, but bill them. Where one number makes no
// sense, nothing was reported.
func (u usage) neutral() llm.Usage {
	var details usageDetails
	_ = json.Unmarshal(u.Details, &details) // details that do not fit are not given
	reported := true
	count := func(raw json.RawMessage) int64 {
		n, _, ok := wire.Count(string(raw))
		reported = reported && ok
		return n
	}
	prompt, completion, total := count(u.Prompt), count(u.Completion), count(u.Total)
	read := min(count(details.Cached), prompt)
	written := min(count(details.Written), prompt-read)
	return llm.Usage{
		InputTokens:      prompt - read - written,
		OutputTokens:     max(completion, total-prompt),
		CacheReadTokens:  read,
		CacheWriteTokens: written,
		Reported:         reported,
	}
}

// answer collects the chunks of one answer.
type answer struct {
	sink      func(llm.Delta)
	id        string
	model     string
	usage     llm.Usage
	stop      string // the vendor's finish reason; empty until the answer is complete
	refused   bool
	reasoning []byte
	field     string // of the chunks, in which the reasoning came
	details   details
	text      []byte
	signed    []byte // the signature of the text
	calls     []call
}

// call is a tool call being received.
type call struct {
	index int
	llm.Block
	// signed is the signature, to which appending again and again costs little.
	signed []byte
}

// maxCalls bounds the tool calls of one answer, far above any real one: the call that
// a piece belongs to is looked for among all of them.
const maxCalls = 10_000

// add takes the next chunk.
func (a *answer) add(exchange *wire.Call, raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return wire.Malformed(fmt.Errorf("event of the answer: %w", err))
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return exchange.StreamError(raw)
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Model != "" {
		a.model = c.Model
	}
	if len(c.Usage) > 0 && string(c.Usage) != "null" {
		a.usage = usageOf(c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 { // only one answer was asked for
			continue
		}
		d := choice.Delta
		said := len(d.Content) + len(d.Refusal) + len(d.ReasoningContent) + len(d.Reasoning) + len(d.Extra.signature()) + sizeOf(d.Details)
		for _, part := range d.ToolCalls {
			said += len(part.Function.Arguments) + len(part.ID) + len(part.Function.Name) + len(part.Extra.signature())
		}
		if said > 0 || len(d.ToolCalls) > 0 || choice.FinishReason != "" {
			if err := exchange.Content(said); err != nil {
				return err
			}
		}
		a.think(fieldReasoningContent, d.ReasoningContent)
		if d.ReasoningContent == "" { // some gateways send both, with the same text
			a.think(fieldReasoning, d.Reasoning)
		}
		if err := a.details.add(d.Details); err != nil {
			return wire.Malformed(err)
		}
		a.say(d.Content)
		a.refused = a.refused || d.Refusal != ""
		a.say(d.Refusal)
		a.signed = append(a.signed, d.Extra.signature()...)
		for _, part := range d.ToolCalls {
			if err := a.call(part); err != nil {
				return wire.Malformed(err)
			}
		}
		if choice.FinishReason != "" {
			a.stop = choice.FinishReason
		}
	}
	return nil
}

func (a *answer) think(field, text string) {
	if text != "" && a.field == "" {
		a.field = field
	}
	a.reasoning = append(a.reasoning, text...)
	a.emit(llm.ReasoningBlock, text)
}

func (a *answer) say(text string) {
	a.text = append(a.text, text...)
	a.emit(llm.TextBlock, text)
}

// call adds a piece of a tool call. A piece belongs to the call with its index;
// but some providers leave the index out or give every call the same, so a new
// id always begins a new call.
func (a *answer) call(part callPart) error {
	at := len(a.calls) - 1
	if part.Index != nil {
		for at >= 0 && a.calls[at].index != *part.Index {
			at--
		}
	}
	if at < 0 || part.ID != "" && a.calls[at].ToolCallID != "" && part.ID != a.calls[at].ToolCallID {
		if at = len(a.calls); at == maxCalls {
			return fmt.Errorf("the answer has more than %d tool calls", maxCalls)
		}
		a.calls = append(a.calls, call{index: at, Block: llm.Block{Type: llm.ToolUseBlock}})
		if part.Index != nil {
			a.calls[at].index = *part.Index
		}
	}
	c := &a.calls[at]
	if part.ID != "" {
		c.ToolCallID = part.ID
	}
	c.signed = append(c.signed, part.Extra.signature()...)
	if part.Function.Name != "" && c.ToolName == "" {
		c.ToolName = part.Function.Name
		a.emit(llm.ToolUseBlock, c.ToolName)
	}
	c.Input = append(c.Input, part.Function.Arguments...)
	if n := len(part.Function.Arguments); n > 0 && a.sink != nil {
		a.sink(llm.Delta{Type: llm.ToolUseBlock, Hidden: n})
	}
	return nil
}

func (a *answer) emit(kind llm.BlockType, text string) {
	if text != "" && a.sink != nil {
		a.sink(llm.Delta{Type: kind, Text: text})
	}
}

// partial is what is known of an answer that failed.
func (a *answer) partial() llm.Response {
	return llm.Response{Model: a.model, StopReason: llm.StopOther, Usage: a.usage}
}

func (a *answer) response() llm.Response {
	out := llm.Response{Model: a.model, Usage: a.usage}
	out.StopReason, out.StopWord = a.stopReason()
	if len(a.reasoning)+len(a.details) > 0 {
		out.Blocks = append(out.Blocks, llm.Block{Type: llm.ReasoningBlock, Text: string(a.reasoning), Signature: cmp.Or(a.details.signature(), signatureOf(a.field))})
	}
	if len(a.text) > 0 {
		out.Blocks = append(out.Blocks, llm.Block{Type: llm.TextBlock, Text: string(a.text), Signature: string(a.signed)})
	}
	for i, c := range a.calls {
		c.Signature = string(c.signed)
		if c.ToolCallID == "" {
			c.ToolCallID = fmt.Sprintf("%s-%d", a.id, i)
		}
		if len(c.Input) == 0 {
			c.Input = json.RawMessage("{}")
		}
		out.Blocks = append(out.Blocks, c.Block)
	}
	return out
}

// stopReason is why the model stopped, with the vendor's word for it. Several
// providers say "stop" after tool calls too.
func (a *answer) stopReason() (reason llm.StopReason, word string) {
	reason, word = wire.Stop(a.stop)
	switch {
	case reason != llm.StopEnd:
		return reason, word
	case a.refused:
		return llm.StopRefusal, ""
	case len(a.calls) > 0:
		return llm.StopToolUse, ""
	}
	return llm.StopEnd, ""
}
