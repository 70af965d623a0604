package handoff

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// trail is the end of a conversation within so many tokens by [Tokens], and how
// many turns of the model it has. An answer that calls tools and the message with
// the results are there together or not at all, so it begins with an answer or
// with a message that answers nothing. Calls without results, and results without
// calls, are left out, for providers refuse them.
//
// The last exchange, which is the last answer and all that follows it, is always
// there. Where it alone has no room it is shortened: images and reasoning are
// left out, long texts keep their two ends, long inputs are replaced. It exceeds
// tokens only when even then there is none, because it has too many calls.
//
// A result that refers to one which is left out has the content of that, see [whole].
//
// The messages given are not changed; those returned may share their blocks.
func trail(messages []llm.Message, tokens int64) (kept []llm.Message, turns int) {
	steps := stepsOf(messages)
	if len(steps) == 0 {
		return nil, 0
	}
	first := lastExchange(steps)
	kept = whole(steps, first)
	if Tokens(kept...) > tokens {
		kept = shortened(kept, tokens)
		return kept, Turns(kept)
	}
	for first > 0 {
		first--
		more := whole(steps, first)
		if Tokens(more...) > tokens {
			break
		}
		kept = more
	}
	return kept, Turns(kept)
}

// stepsOf divides a conversation into what stays together: an answer with calls
// and the message of their results, or a single message.
func stepsOf(messages []llm.Message) [][]llm.Message {
	var steps [][]llm.Message
	for i := 0; i < len(messages); i++ {
		calls, results := callsOf(messages[i]), resultsOf(messages[i])
		switch {
		case len(results) > 0: // of no call
		case len(calls) == 0:
			steps = append(steps, messages[i:i+1])
		case i+1 < len(messages) && slices.Equal(calls, resultsOf(messages[i+1])):
			steps = append(steps, messages[i:i+2])
			i++
		}
	}
	return steps
}

// lastExchange is the index of the step with the last answer, or of the last one
// where there is no answer.
func lastExchange(steps [][]llm.Message) int {
	for i, step := range slices.Backward(steps) {
		if step[0].Role == llm.Assistant {
			return i
		}
	}
	return len(steps) - 1
}

// callsOf are the ids of the calls in a message, sorted.
func callsOf(m llm.Message) []string { return idsOf(m, llm.ToolUseBlock) }

// resultsOf are the ids of the calls whose results are in a message, sorted.
func resultsOf(m llm.Message) []string { return idsOf(m, llm.ToolResultBlock) }

func idsOf(m llm.Message, kind llm.BlockType) []string {
	var ids []string
	for _, b := range m.Blocks {
		if b.Type == kind {
			ids = append(ids, b.ToolCallID)
		}
	}
	slices.Sort(ids)
	return ids
}
