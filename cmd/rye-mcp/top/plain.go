package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
)

// Lines are the threads of a whole board as text, for where nothing can be drawn, or what
// is drawn cannot be read: each says in words how it stands.
func Lines(b board.Board, now time.Time) (lines []string) {
	t := newThreads()
	t.take(b)
	for _, e := range t.list() {
		if e.ask {
			lines = append(lines, askLine(e.row, now))
			continue
		}
		lines = append(lines, threadLine(e))
	}
	sum := b.Totals
	return append(lines, fmt.Sprintf("%d working, %d asking, %d queued, %d ended, %s spent, %s reserved", sum.Working, sum.Asking, sum.Queued, sum.Ended, sum.Spend, sum.Reserved))
}

func askLine(row *board.Row, now time.Time) string {
	q := row.Question
	var answers []string
	for _, d := range q.Options {
		answers = append(answers, string(d))
	}
	return plain.Line(fmt.Sprintf("%s asks, %s from now %s holds: %s (answers: %s; rye-mcp threads approve %s)", row.ThreadID, plain.Age(q.DeadlineAt.Sub(now)), q.Default,
		plain.Line(q.Text), strings.Join(answers, ", "), row.ThreadID))
}

func threadLine(e entry) string {
	row := e.row
	word, _, _ := styles{}.stateOf(row)
	text := e.prefix + labelOf(row) + " " + word
	if turns := turnsOf(row); turns != "" {
		text += ", turn " + turns
	}
	text += ", " + row.TreeSpend.String()
	if b := row.Budget; b != nil && b.Limit > 0 {
		text += fmt.Sprintf(" of %s", b.Limit)
	}
	if row.Error != nil {
		text += ": " + plain.Line(row.Error.Message)
	}
	return text
}
