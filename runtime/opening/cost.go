package opening

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// charsPerToken is the usual estimate, as in the accounts of a running thread.
const charsPerToken = 4

// Cost is what the first request of a thread costs in tokens, estimated: four
// characters are one. Text that hooks add is not in it.
type Cost struct {
	Tokens  int64 `json:"tokens" jsonschema:"all of it, estimated; hooks may add to it"`
	System  int64 `json:"system_prompt"`
	Tools   int64 `json:"tools" jsonschema:"names, descriptions and schemas"`
	Context int64 `json:"context" jsonschema:"knowledge around the directive"`
	Message int64 `json:"message" jsonschema:"the directive with its inputs"`

	// Bytes is the size of all of it: money is judged as if each were a token.
	Bytes int64 `json:"-"`
}

// Estimate measures the request that the thread will make: the prompts are built, and
// the tools written, by the same code. ToolUse is that of the model.
func Estimate(in prompt.Input, tools []llm.Tool, toolUse string) Cost {
	system, user := prompt.Build(in)
	in.Context, in.Hooks = prompt.Blocks{}, prompt.Blocks{}
	_, bare := prompt.Build(in)
	toolBytes, toolChars := SizeOf(toolUse)(tools)
	c := Cost{
		System: tokens(chars(system)), Tools: tokens(toolChars),
		Context: tokens(chars(user) - chars(bare)), Message: tokens(chars(bare)),
		Bytes: thread.Sum(int64(len(system)), int64(len(user)), toolBytes),
	}
	c.Tokens = thread.Sum(c.System, c.Tools, c.Context, c.Message)
	return c
}

func chars(text string) int64 { return int64(utf8.RuneCountInString(text)) }

func tokens(chars int64) int64 { return (chars + charsPerToken - 1) / charsPerToken }

// Text says it in a line.
func (c Cost) Text() string {
	return fmt.Sprintf("about %d tokens (system prompt %d, tools %d, context %d, message %d)", c.Tokens, c.System, c.Tools, c.Context, c.Message)
}

// Shortage is a limit that does not pay for the first request.
type Shortage struct {
	Code    string // of a [thread.LimitError]; empty: the context window of the model
	Message string
	Try     string
}

// Shortages says which limits do not pay for the request. Choice is nil where no
// model is known; then neither money nor context window are.
func (c Cost) Shortages(limits thread.Limits, choice *provider.Choice) []Shortage {
	var short []Shortage
	if limits.Tokens > 0 && c.Tokens+limit.MinOutput >= limits.Tokens {
		short = append(short, Shortage{
			Code: limit.TokensExceeded,
			Message: fmt.Sprintf("the tokens limit of %d is used up by the first request of %s and a short answer: the thread ends after that",
				limits.Tokens, c.Text()),
			Try: fmt.Sprintf("allow at least %d tokens, %s", (c.Tokens+limit.MinOutput)*comfortable, c.saving()),
		})
	} else if last := c.lastTurn(limits); last > 0 {
		short = append(short, Shortage{
			Code: limit.TokensExceeded,
			Message: fmt.Sprintf("the tokens limit of %d ends the thread in turn %d of %d at the latest: each turn sends the first request of %s again",
				limits.Tokens, last, limits.Turns, c.Text()),
			Try: fmt.Sprintf("allow at least %d tokens, %s", (c.Tokens+limit.MinOutput)*min(int64(limits.Turns), comfortable), c.saving()),
		})
	}
	if choice == nil || choice.Unpriced() {
		return short
	}
	_, err := limit.Allowance(limit.AllowanceInput{
		Limits: limits, Left: limits.Spend, Model: choice.Model, NewBytes: c.Bytes, Wanted: choice.MaxOutput,
	})
	if full, ok := errors.AsType[*limit.ContextFullError](err); ok {
		short = append(short, Shortage{
			Message: fmt.Sprintf("the first request of %s, with what the provider adds about %d, leaves no room for an answer in the context window of %s, which has %d",
				c.Text(), full.Tokens, choice.Ref(), full.Window),
			Try: "choose a model with a larger context window, " + c.saving(),
		})
	} else if dear, ok := errors.AsType[*thread.LimitError](err); ok && dear.Code == limit.SpendExceeded {
		short = append(short, Shortage{
			Code:    dear.Code,
			Message: fmt.Sprintf("the spend limit of %s does not pay for one call of %s, which may cost %s", limits.Spend, choice.Ref(), dear.Value),
			Try:     "raise it, or choose a cheaper model",
		})
	}
	return short
}

// lastTurn is the turn in which the tokens limit ends a thread at the latest; 0 where that is
// not before its last turn, or not soon.
func (c Cost) lastTurn(limits thread.Limits) int {
	if limits.Tokens <= 0 || c.Tokens <= 0 {
		return 0
	}
	last := (limits.Tokens + c.Tokens - 1) / c.Tokens
	if last >= comfortable || last >= int64(limits.Turns) {
		return 0
	}
	return int(last)
}

// comfortable is how many first requests a limit should pay for: each turn sends the
// conversation again.
const comfortable = 4

// saving names what would make the request smaller, its largest part.
func (c Cost) saving() string {
	switch largest := max(c.System, c.Tools, c.Context, c.Message); largest {
	case c.Tools:
		return "or name fewer tools in its <permissions>"
	case c.Message:
		return "or shorten its body"
	default:
		return "or let it have less context"
	}
}
