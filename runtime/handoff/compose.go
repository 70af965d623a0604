package handoff

import (
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// MinCeiling is the smallest ceiling, in tokens, that Compose keeps to.
const MinCeiling = 500

// Summary and last exchange keep a quarter of the ceiling each, should they need
// it, before the manifest is shortened.
const keptShare = 4

// summaryTitle stands above the summary.
const summaryTitle = "\n\n# Summary of the work so far\n\n"

// Compose makes the messages that a successor begins with, within a ceiling of
// tokens by [Tokens], and says how many turns of the conversation are among them.
// The first is a message of the user with the manifest and, where there is one,
// the summary; then comes the end of the conversation, see [trail].
//
// The records that earlier successors of the chain began with are left out, for the
// new one takes their place; the summaries in them stay.
//
// Where there is too much of everything, earlier messages are left out first.
// Then the last exchange is shortened, then the summary, and the manifest last.
// A ceiling below [MinCeiling] is one of MinCeiling; it is exceeded only by a last
// exchange with too many calls.
func Compose(m Manifest, summary string, messages []llm.Message, ceiling int64) (seeded []llm.Message, turns int) {
	messages = withoutReasoning(withoutRecords(messages))
	ceiling = max(ceiling, MinCeiling)
	room := ceiling*bytesPerToken - blockMarks - bytesPerToken // of the first message's text, in bytes
	exchange := lastOf(messages)
	keptLast := min(exchange, ceiling/keptShare) * bytesPerToken
	keptSummary := min(int64(len(summary)), room/keptShare)
	if summary != "" {
		room -= int64(len(summaryTitle))
	}

	// How much is left out is known in the end; to say that it is everything takes
	// the most room.
	m.left = left{messages: len(messages), turns: Turns(messages)}
	most := room - keptLast - keptSummary
	inDetail := m.detailFor(most)
	text := m.at(inDetail, most)
	most = int64(len(text))
	if summary != "" {
		summary = summaryTitle + cutMiddle(summary, int(max(keptSummary, room-keptLast-most)))
	}
	kept, turns := trail(messages, ceiling-Tokens(llm.Text(llm.User, text+summary)))

	m.left = left{messages: len(messages) - len(kept), turns: m.left.turns - turns}
	text = m.at(inDetail, most) + summary
	return append([]llm.Message{llm.Text(llm.User, text)}, kept...), turns
}

// withoutRecords leaves out what earlier successors were told of how the work
// stood, which tells a model that it is another thread than it is.
func withoutRecords(messages []llm.Message) []llm.Message {
	var rest []llm.Message
	for _, m := range messages {
		if m.Role == llm.User && len(m.Blocks) == 1 && strings.HasPrefix(m.Blocks[0].Text, recordTitle) {
			_, summary, found := strings.Cut(m.Blocks[0].Text, summaryTitle)
			if !found {
				continue
			}
			m = llm.Text(llm.User, strings.TrimSpace(summaryTitle)+"\n\n"+summary)
		}
		rest = append(rest, m)
	}
	return rest
}

// withoutReasoning leaves out what the model has thought: vendors take it back only
// behind the words that it came behind, and those are others in a successor.
func withoutReasoning(messages []llm.Message) []llm.Message {
	rest := slices.Clone(messages)
	for i := range rest {
		leaveOutReasoning(&rest[i])
	}
	return rest
}

// lastOf is the size of the last exchange of a conversation, in tokens.
func lastOf(messages []llm.Message) int64 {
	steps := stepsOf(messages)
	if len(steps) == 0 {
		return 0
	}
	return Tokens(whole(steps, lastExchange(steps))...)
}
