package limit

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Call is what is known of a call of a model when it is over, however it ended.
type Call struct {
	Input     int64     // tokens that its request can be at most
	Allowance int       // tokens of output it was given
	Sent      bool      // the whole request had left
	Delivered int64     // bytes of the answer that arrived
	Whole     bool      // the answer is complete
	Usage     llm.Usage // what the provider reported
}

// Billed is the usage that the call is charged for: what the provider reported,
// and the worst where it reported nothing.
//
// Zeros for what must have been used are no report: some servers send them for
// what they do not count. Of an answer that broke off, or was broken off, what
// arrived is charged, every byte a token, as no tokeniser makes more of it, and
// the input as soon as the request was sent. A call that never left is free.
func (c Call) Billed() llm.Usage {
	u := c.Usage
	output := u.Reported && u.ContextTokens() > 0 && (u.OutputTokens > 0 || c.Delivered == 0)
	input := u.Reported && u.Input() > 0
	if !c.Whole && !c.Sent && c.Delivered == 0 && !input && !output {
		return llm.Usage{}
	}
	u.Reported = input && (output || !c.Whole)
	if !input {
		u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens = c.Input, 0, 0
	}
	most := int64(c.Allowance)
	switch {
	case c.Whole && output:
	case c.Whole:
		u.OutputTokens = max(u.OutputTokens, most)
	default:
		u.OutputTokens = max(u.OutputTokens, min(c.Delivered, most))
	}
	return u
}

// AbsurdUsageError says that a provider reports tokens that the call cannot have
// used.
type AbsurdUsageError struct {
	What     string // input or output
	Reported int64
	Most     int64
}

func (e *AbsurdUsageError) Error() string {
	return fmt.Sprintf("the provider reports %d tokens of %s, and the call can have used %d at most", e.Reported, e.What, e.Most)
}

// absurdFactor is how far a report may pass what request and context window can
// come to: providers add to a request what is not in its bytes, and a window may
// be larger than is known here.
const absurdFactor = 2

// CheckUsage refuses a report that is more than absurdFactor times what the call
// can have used: of input the context window or, where that is more, every byte of
// the request a token; of output the window, or every byte that arrived.
func (c Call) CheckUsage(model llm.Model) error {
	window := int64(model.ContextWindow)
	if window <= 0 {
		window = defaultWindow
	}
	for _, part := range []struct {
		what           string
		reported, most int64
	}{
		{"input", c.Usage.Input(), max(window, thread.Sum(c.Input, overheadTokens))},
		{"output", max(0, c.Usage.OutputTokens), max(window, int64(c.Allowance), c.Delivered)},
	} {
		if most := thread.Product(absurdFactor, part.most); part.reported > most {
			return &AbsurdUsageError{What: part.what, Reported: part.reported, Most: most}
		}
	}
	return nil
}
