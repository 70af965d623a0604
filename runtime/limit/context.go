package limit

import (
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ContextShare is how much of a model's context window a conversation uses,
// estimated as by [ContextUse]: 0.75 is three quarters.
func ContextShare(model llm.Model, tokens, newChars int64) float64 {
	used, window := ContextUse(model, tokens, newChars)
	return float64(used) / float64(window)
}

// ContextUse is how many tokens a conversation uses, estimated, and how many the
// model's context window has. Tokens are what the provider reported for the last
// call; newChars are the characters that were added since, of which four are a
// token. Before the first report they are everything, system prompt and tools
// included.
func ContextUse(model llm.Model, tokens, newChars int64) (used, window int64) {
	window = int64(model.ContextWindow)
	if window <= 0 {
		window = defaultWindow
	}
	return thread.Sum(tokens, newChars/charsPerToken), window
}

// charsPerToken is the usual estimate.
const charsPerToken = 4
