package llm

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// Price is micro-dollars per million tokens, which is a whole number for every
// published price.
type Price struct {
	Input      int64
	Output     int64
	CacheRead  int64
	CacheWrite int64
}

// tokensPerPrice is the number of tokens a Price is for.
const tokensPerPrice = 1_000_000

// Cost is what u costs, rounded up to the micro-dollar.
func (p Price) Cost(u Usage) thread.Micros {
	sum := u.InputTokens*p.Input + u.OutputTokens*p.Output +
		u.CacheReadTokens*p.CacheRead + u.CacheWriteTokens*p.CacheWrite
	return thread.Micros((sum + tokensPerPrice - 1) / tokensPerPrice)
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
