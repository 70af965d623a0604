package prompt

import (
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// charactersPerToken is the usual estimate for English text and code.
const charactersPerToken = 4

// EstimateTokens is about how many tokens the parts take in the context window:
// their characters divided by four, rounded up. It serves until the provider
// has reported a number, and for what was added since.
func EstimateTokens(messages []llm.Message, tools []llm.Tool, system string) int64 {
	characters := utf8.RuneCountInString(system)
	for _, t := range tools {
		characters += utf8.RuneCountInString(t.Name) + utf8.RuneCountInString(t.Description) + utf8.RuneCount(t.Schema)
	}
	for _, m := range messages {
		for _, b := range m.Blocks {
			characters += utf8.RuneCountInString(b.Text) + utf8.RuneCountInString(b.ToolName) + utf8.RuneCount(b.Input)
		}
	}
	return int64((characters + charactersPerToken - 1) / charactersPerToken)
}
