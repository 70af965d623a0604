package limit

import (
	"math"
	"strconv"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Codes of [thread.LimitError].
const (
	TurnsExceeded    = "turns_exceeded"
	TokensExceeded   = "tokens_exceeded"
	SpendExceeded    = "spend_exceeded"
	DurationExceeded = "duration_exceeded"
)

// Check says which limit keeps a thread from its next turn; nil when none does.
// Elapsed is the time since the first turn. A limit is used up when it is
// reached. A spend limit of zero is the exception, since a model that costs
// nothing may run under it; one that costs something is refused by [Allowance].
func Check(l thread.Limits, c thread.Cost, elapsed time.Duration) *thread.LimitError {
	switch seconds := elapsed.Seconds(); {
	case c.Turns >= l.Turns:
		return &thread.LimitError{Code: TurnsExceeded, Value: strconv.Itoa(c.Turns), Max: strconv.Itoa(l.Turns)}
	case c.Tokens() >= l.Tokens:
		return tokensExceeded(c.Tokens(), l.Tokens)
	case c.Spend > l.Spend, c.Spend == l.Spend && l.Spend > 0:
		return spendExceeded(c.Spend, l.Spend)
	case seconds >= l.DurationSeconds:
		return &thread.LimitError{
			Code:  DurationExceeded,
			Value: strconv.FormatFloat(seconds, 'f', 1, 64),
			Max:   strconv.FormatFloat(l.DurationSeconds, 'f', -1, 64),
		}
	default:
		return nil
	}
}

// InChain is what a chain has used of a limit that was reached, of which now is the rest
// and whole is all; nil where the threads before have used nothing of it, as
// far as it is told.
func InChain(over *thread.LimitError, now, whole thread.Limits) *thread.ChainUse {
	name := Name(over)
	most := Set(whole)[name]
	before := max(0, most-Set(now)[name])
	told := inUnit(over.Code, before)
	if told == inUnit(over.Code, 0) {
		return nil
	}
	return &thread.ChainUse{Value: inUnit(over.Code, before+reached(over)), Max: inUnit(over.Code, most), Before: told}
}

// inUnit is an amount of a limit, as [thread.LimitError] writes it.
func inUnit(code string, amount float64) string {
	if code == SpendExceeded {
		return thread.Micros(math.Round(amount * thread.MicrosPerDollar)).String()
	}
	return plain(math.Round(amount*10) / 10)
}

func tokensExceeded(value, most int64) *thread.LimitError {
	return &thread.LimitError{Code: TokensExceeded, Value: strconv.FormatInt(value, 10), Max: strconv.FormatInt(most, 10)}
}

func spendExceeded(value, most thread.Micros) *thread.LimitError {
	return &thread.LimitError{Code: SpendExceeded, Value: value.String(), Max: most.String()}
}
