package llm

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// Price is micro-dollars per million tokens, which is a whole number for every
// published price.
type Price struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	// Short holds for calls whose input is at most UpTo tokens, where a vendor asks more for
	// longer ones; UpTo 0: every call costs the same. Bounds of what a call may cost
	// take the other numbers, which are no lower.
	UpTo  int64 `json:"up_to,omitempty"`
	Short Rates `json:"short,omitzero"`
}

// Rates are the four numbers of a [Price].
type Rates struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// RatesOf are the numbers that hold for calls of any length, or of more than UpTo.
func RatesOf(p Price) Rates {
	return Rates{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
}

// tokensPerPrice is the number of tokens a Price is for.
const tokensPerPrice = 1_000_000

// Cost is what u costs, rounded up to the micro-dollar and at most
// [thread.MaxMicros].
func (p Price) Cost(u Usage) thread.Micros {
	rates := RatesOf(p)
	if p.UpTo > 0 && u.Input() <= p.UpTo {
		rates = p.Short
	}
	sum := thread.Sum(
		thread.Product(u.InputTokens, rates.Input), thread.Product(u.OutputTokens, rates.Output),
		thread.Product(u.CacheReadTokens, rates.CacheRead), thread.Product(u.CacheWriteTokens, rates.CacheWrite),
	)
	cost := sum / tokensPerPrice
	if sum%tokensPerPrice > 0 {
		cost++
	}
	return min(thread.MaxMicros, thread.Micros(cost))
}

// MaxInput is the highest price a token of input can have.
func (p Price) MaxInput() int64 { return max(p.Input, p.CacheRead, p.CacheWrite) }

// Model is what is known about a model.
type Model struct {
	ID              string
	ContextWindow   int // tokens; 0 when unknown
	MaxOutputTokens int // 0 when unknown
	Price           Price
	Priced          bool // false: Price is unknown, not zero
}
