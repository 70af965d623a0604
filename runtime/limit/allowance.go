package limit

import (
	"fmt"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	// MinOutput is the shortest answer worth paying for, in tokens: enough for one
	// tool call or a short paragraph.
	MinOutput = 256

	// overheadTokens is what a provider adds to a request that is not in its
	// bytes: the prompt that explains tool use (Anthropic publishes at most 530
	// tokens) and the marks around messages.
	overheadTokens = 640

	// bytesPerToken is the usual estimate. It is used where being wrong costs no
	// money; where it does, a token is taken to be as short as it can be, one byte.
	bytesPerToken = 4

	// defaultWindow is the context window of a model nothing is known about.
	defaultWindow = 200_000

	// tokensPerPrice is the number of tokens an llm.Price is for.
	tokensPerPrice = 1_000_000
)

// AllowanceInput describes the call that is about to be made.
type AllowanceInput struct {
	Limits thread.Limits
	Used   thread.Cost // by the thread so far
	// Left is what the ledger lets the thread still spend: children that run hold
	// a part of its limit.
	Left thread.Micros
	// Model is what will be called. A price that is not known counts as zero, so
	// the caller must have refused such a model or have leave to use it.
	Model llm.Model
	// ContextTokens is the llm.Usage.ContextTokens of the last call of this
	// conversation; 0 before the first report.
	ContextTokens int64
	// NewBytes is the size of what was added since that report. Before the first
	// it is everything: system prompt, tools with their schemas, messages.
	NewBytes int64
	// AtLeast is what the input comes to by what was counted of it elsewhere; 0: nothing
	// was. It counts where the input is estimated, and says nothing about money.
	AtLeast int64
	// Most is how many tokens the input can be at most; 0: as many as ContextTokens and
	// NewBytes come to.
	Most int64
	// Wanted is the configured length of an answer in tokens; 0: as long as fits.
	Wanted int
}

// ContextFullError says that the context window has no room for even a short answer.
type ContextFullError struct {
	Tokens int64 // in the context, estimated
	Window int64
}

func (e *ContextFullError) Error() string {
	return fmt.Sprintf("context window is full: about %d of %d tokens are used", e.Tokens, e.Window)
}

// unpaidError is the spend limit where what the next call can cost has reached it. It is
// worded when it is read: [thread.LimitError.Chain] is known later.
type unpaidError struct {
	over        *thread.LimitError
	worst, left thread.Micros
}

func (e *unpaidError) Error() string {
	return fmt.Sprintf("%v: the next call was not made, as it could cost up to %s, and %s are left", e.over, e.worst, e.left)
}

func (e *unpaidError) Unwrap() error { return e.over }

// Allowance is the largest number of output tokens the call may be given.
//
// It never lets the call cost more than what is left: every token that can be
// input is priced at the dearest price of input, each new byte counts as a
// token of its own unless Most says that they are fewer, and the answer is priced at its full length. When not even
// [MinOutput] tokens fit the error wraps a *[thread.LimitError] with
// [SpendExceeded], before anything is paid.
//
// The answer is also kept within the model's longest answer, the context window
// (a *[ContextFullError]) and, as far as there is room, the tokens limit. For
// these two the input is estimated, because a token too many does no harm
// there. The tokens limit only shortens an answer: [Check] is what ends a thread
// that has passed it, so that a directive with a tight limit gets a first turn.
func Allowance(in AllowanceInput) (int, error) {
	wanted := int64(math.MaxInt32)
	for _, bound := range []int{in.Wanted, in.Model.MaxOutputTokens} {
		if bound > 0 {
			wanted = min(wanted, int64(bound))
		}
	}
	least := min(wanted, MinOutput)
	estimate := max(in.AtLeast, thread.Sum(in.ContextTokens, in.NewBytes/bytesPerToken, overheadTokens))

	window := int64(in.Model.ContextWindow)
	if window <= 0 {
		window = defaultWindow
	}
	inWindow := window - estimate
	if inWindow < least {
		return 0, &ContextFullError{Tokens: estimate, Window: window}
	}
	inTokens := max(least, in.Limits.Tokens-in.Used.Tokens()-estimate)
	inMoney := affordable(in)
	if inMoney < least {
		worst := worstCost(in, least)
		return 0, &unpaidError{spendExceeded(in.Limits.Spend-in.Left+worst, in.Limits.Spend), worst, max(0, in.Left)}
	}
	return int(min(wanted, inWindow, inTokens, inMoney)), nil
}

// affordable is the longest answer that the money left can pay, after input at
// its dearest.
func affordable(in AllowanceInput) int64 {
	input := worstInput(in)
	left := thread.Product(max(0, int64(in.Left)), tokensPerPrice) - input
	switch {
	case left < 0, input == math.MaxInt64: // the latter may be more than can be counted
		return -1
	case in.Model.Price.Output <= 0:
		return math.MaxInt64
	default:
		return left / in.Model.Price.Output
	}
}

// worstInput is the most the input can cost, in micro-dollars times
// tokensPerPrice.
func worstInput(in AllowanceInput) int64 {
	tokens := thread.Sum(in.ContextTokens, in.NewBytes)
	if in.Most > 0 {
		tokens = min(tokens, in.Most)
	}
	return thread.Product(thread.Sum(tokens, overheadTokens), max(0, in.Model.Price.MaxInput()))
}

// WorstCost is the most a call with that allowance can cost.
func WorstCost(in AllowanceInput, allowance int) thread.Micros {
	return worstCost(in, int64(allowance))
}

// worstCost is the most a call with that many output tokens can cost, rounded
// up. It stays below what would overflow a sum of amounts.
func worstCost(in AllowanceInput, output int64) thread.Micros {
	total := thread.Sum(worstInput(in), thread.Product(output, max(0, in.Model.Price.Output)))
	return thread.Micros(total/tokensPerPrice + 1)
}
