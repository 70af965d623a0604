package llm

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// Price is micro-dollars per million tokens, which is a whole number for every
// published price.
type Price struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// tokensPerPrice is the number of tokens a Price is for.
const tokensPerPrice = 1_000_000

// Cost is what u costs, rounded up to the micro-dollar and at most
// [thread.MaxMicros].
func (p Price) Cost(u Usage) thread.Micros {
	sum := thread.Sum(
		thread.Product(u.InputTokens, p.Input), thread.Product(u.OutputTokens, p.Output),
		thread.Product(u.CacheReadTokens, p.CacheRead), thread.Product(u.CacheWriteTokens, p.CacheWrite),
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
