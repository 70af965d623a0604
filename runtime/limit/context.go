package limit

import "github.com/rye-mcp/rye-mcp/runtime/llm"

// ContextShare is how much of a model's context window a conversation uses,
// estimated: 0.75 is three quarters. Tokens and newBytes are as
// [AllowanceInput.ContextTokens] and [AllowanceInput.NewBytes].
func ContextShare(model llm.Model, tokens, newBytes int64) float64 {
	used, window := ContextUse(model, tokens, newBytes)
	return float64(used) / float64(window)
}

// ContextUse is how many tokens a conversation uses, estimated, and how many the
// model's context window has.
func ContextUse(model llm.Model, tokens, newBytes int64) (used, window int64) {
	window = int64(model.ContextWindow)
	if window <= 0 {
		window = defaultWindow
	}
	return sum(tokens, newBytes/bytesPerToken, overheadTokens), window
}
