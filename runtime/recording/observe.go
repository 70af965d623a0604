package recording

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Observed is what is compared of two runs of a thread.
type Observed struct {
	Request Request `json:"request"`
	Calls   []Call  `json:"calls"`
	Hooks   []Hook  `json:"hooks"`
	Outcome Outcome `json:"outcome"`
}

// Request is the first one of a thread.
type Request struct {
	System   string    `json:"system"`
	Messages []Message `json:"messages"`
	// Tools are nil where the transcript is of a version that did not record them.
	Tools []llm.Tool `json:"tools"`
}

// Message is one of a request, as text.
type Message struct {
	Role llm.Role `json:"role"`
	Text string   `json:"text"`
}

// Call is a tool call, in the order in which the model made them.
type Call struct {
	Turn  int    `json:"turn"`
	Tool  string `json:"tool"`
	Input string `json:"input"`
	// Result is "ok", the code of a failure, or that there is none.
	Result string `json:"result"`
}

// The results of calls that are no codes.
const (
	resultOK   = "ok"
	resultNone = "no result"
	failedCall = "failed"
)

// Hook is one that fired.
type Hook struct {
	ID    string `json:"hook_id"`
	Event string `json:"event"`
	Error string `json:"error,omitempty"`
}

// Outcome is how a thread ended.
type Outcome struct {
	Status  thread.State   `json:"status"` // empty: it had not ended
	Result  string         `json:"result,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
	Code    string         `json:"error_code,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// Observe reads what a transcript says of a run. It leaves out events that cannot be read.
func Observe(events iter.Seq2[thread.Event, error]) Observed {
	o := observer{Observed: Observed{Calls: []Call{}, Hooks: []Hook{}, Request: Request{Messages: []Message{}}}}
	for e, err := range events {
		if err == nil {
			o.add(e)
		}
	}
	for _, e := range o.ends {
		o.end(e)
	}
	return o.Observed
}

type observer struct {
	Observed
	asked   bool        // the first request has left
	calls   []llm.Block // of all answers so far
	turns   []int       // of each call
	ends    []thread.Event
	answers map[int64]string // texts, by number of the event
}

func (o *observer) add(e thread.Event) {
	switch e.Type {
	case thread.EventToolsOffered:
		decoded(e, func(p transcript.ToolsOffered) { o.Request.Tools = append([]llm.Tool{}, p.Tools...) })
	case thread.EventSystemPrompt:
		decoded(e, func(p transcript.SystemPrompt) { o.Request.System = p.Text })
	case thread.EventCognitionIn:
		if !o.asked {
			decoded(e, func(p transcript.CognitionIn) {
				o.Request.Messages = append(o.Request.Messages, Message{Role: p.Role, Text: textOf(p.Blocks)})
			})
		}
	case thread.EventMessage:
		if !o.asked {
			decoded(e, func(p transcript.Message) {
				o.Request.Messages = append(o.Request.Messages, Message{Role: llm.User, Text: textOf(p.Blocks)})
			})
		}
	case thread.EventCognitionRequest, thread.EventErrorClassified:
		o.asked = true
	case thread.EventCognitionOut:
		o.asked = true
		decoded(e, func(p transcript.CognitionOut) { o.answer(e.Seq, p) })
	case thread.EventToolCallResult:
		decoded(e, o.result)
	case thread.EventHookFired:
		decoded(e, func(p transcript.HookFired) {
			o.Hooks = append(o.Hooks, Hook{ID: p.HookID, Event: p.Event, Error: p.Error})
		})
	case thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled, thread.EventThreadHandoff:
		o.ends = append(o.ends, e)
	}
}

func decoded[T any](e thread.Event, take func(T)) {
	if p, err := transcript.Decode[T](e); err == nil {
		take(p)
	}
}

// answer takes the calls of an answer, in their order.
func (o *observer) answer(seq int64, p transcript.CognitionOut) {
	for _, b := range p.Blocks {
		if b.Type == llm.ToolUseBlock {
			o.calls, o.turns = append(o.calls, b), append(o.turns, p.Turn)
			o.Calls = append(o.Calls, Call{Turn: p.Turn, Tool: b.ToolName, Input: string(b.Input), Result: resultNone})
		}
	}
	if o.answers == nil {
		o.answers = map[int64]string{}
	}
	o.answers[seq] = llm.TextOf(p.Blocks)
}

// result belongs to the first call of that id in its turn that has none yet.
func (o *observer) result(p transcript.ToolCallResult) {
	for i, c := range o.calls {
		if o.turns[i] == p.Turn && c.ToolCallID == p.CallID && o.Calls[i].Result == resultNone {
			o.Calls[i].Result = ResultOf(p.Text, p.IsError)
			return
		}
	}
}

// ResultOf is what is compared of the result of a call: whether it failed, and how.
func ResultOf(text string, failed bool) string {
	if !failed {
		return resultOK
	}
	if text == NoResult {
		return resultNone
	}
	var told struct{ Code string }
	if json.Unmarshal([]byte(text), &told) == nil && told.Code != "" {
		return told.Code
	}
	return failedCall
}

// NoResult is what the model of a replay is told of a call without a result on record.
const NoResult = "The recording has no result of this call: the thread was stopped before its tool had answered."

func (o *observer) end(e thread.Event) {
	decoded(e, func(p transcript.Ended) {
		text := p.Outcome.Result
		for _, seq := range p.ResultOf { // a long result stands in the answers that it is made of
			text += o.answers[seq]
		}
		o.Outcome = Outcome{Status: p.Outcome.State, Result: strings.TrimSpace(text), Outputs: p.Outcome.Outputs}
		if problem := p.Outcome.Error; problem != nil {
			o.Outcome.Code, o.Outcome.Error = problem.Code, problem.Message
		}
	})
}

// textOf shows the blocks of a message.
func textOf(blocks []llm.Block) string {
	var parts []string
	for _, b := range blocks {
		switch b.Type {
		case llm.TextBlock, llm.ReasoningBlock:
			parts = append(parts, b.Text)
		case llm.ToolUseBlock:
			parts = append(parts, fmt.Sprintf("[call %s %s]", b.ToolName, b.Input))
		case llm.ToolResultBlock:
			parts = append(parts, "[result] "+b.Text)
		}
		for _, image := range b.Images {
			parts = append(parts, fmt.Sprintf("[image %s %s]", image.MediaType, image.Ref))
		}
	}
	return strings.Join(parts, "\n")
}
