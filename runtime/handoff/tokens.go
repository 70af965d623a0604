package handoff

import "github.com/rye-mcp/rye-mcp/runtime/llm"

const (
	// blockMarks is more than the tokens that a provider puts around a block for its
	// role and kind.
	blockMarks = 64
	// imageSize is what an image counts for, in bytes. As tokens it is more than the
	// vendors make of one (Anthropic at most 4 784, OpenAI and Google fewer), and as
	// bytes, of which four are a token, what they make of one of a usual size.
	imageSize = 6400
	// bytesPerToken makes an estimate of tokens from bytes.
	bytesPerToken = 4
)

// Size is the size of a message in bytes, which it does not exceed in tokens.
func Size(m llm.Message) int64 {
	var n int64
	for _, b := range m.Blocks {
		n += int64(imageSize * len(b.Images))
		n += int64(blockMarks + len(b.Text) + len(b.Input) + len(b.ToolName) + len(b.ToolCallID) + len(b.Signature))
	}
	return n
}

// Tokens is an estimate of the tokens of messages.
func Tokens(messages ...llm.Message) int64 {
	var n int64
	for _, m := range messages {
		n += (Size(m) + bytesPerToken - 1) / bytesPerToken
	}
	return n
}

// Ceiling is how many tokens a conversation may have that a thread takes over: as the
// settings say, and at most half of what its context window leaves beside the fixed
// tokens, which every call sends, for it is to get somewhere.
func Ceiling(settings, window, fixed int64) int64 { return min(settings, (window-fixed)/2) }

// Turns is how many of the messages a model has written.
func Turns(messages []llm.Message) int {
	turns := 0
	for _, m := range messages {
		if m.Role == llm.Assistant {
			turns++
		}
	}
	return turns
}
