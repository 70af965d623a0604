package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Widths of the columns, in the order in which they are given up: what a column needs,
// and how wide the terminal is at least for it to be there.
const (
	signWidth  = 2
	stateWidth = 10
	barWidth   = 8
	spendWidth = 9
	turnsWidth = 7
	fullWidth  = 5
	ageWidth   = 5

	turnsFrom = 72
	fullFrom  = 80
	ageFrom   = 90
	wordsFrom = 110
)

// division is how the width of the list is divided.
type division struct {
	name, words      int
	turns, full, age bool
}

func divide(width int) division {
	c := division{turns: width >= turnsFrom, full: width >= fullFrom, age: width >= ageFrom}
	rest := width - 1 - signWidth - stateWidth - barWidth - 1 - spendWidth
	for _, column := range []struct {
		shown bool
		width int
	}{{c.turns, turnsWidth}, {c.full, fullWidth}, {c.age, ageWidth}} {
		if column.shown {
			rest -= column.width
		}
	}
	c.name = max(0, rest)
	if width >= wordsFrom {
		c.name = rest * 2 / 5
		c.words = rest - c.name
	}
	return c
}

// listLines is the list with its titles; the cursor is in it.
func (m *Model) listLines(height int) []string {
	c := divide(m.width)
	lines := []string{lineOf(m.width, span{m.style.dim, c.titles()})}
	m.listed, m.listTop = height-1, m.listTop+1
	at := m.at()
	m.offset = max(0, min(m.offset, len(m.list)-m.listed))
	if at >= 0 {
		m.offset = max(min(m.offset, at), at-m.listed+1)
	}
	for i := m.offset; i < min(len(m.list), m.offset+m.listed); i++ {
		lines = append(lines, m.entryLine(m.list[i], i == at, c))
	}
	if len(m.list) == 0 {
		lines = append(lines, lineOf(m.width, span{m.style.dim, "   " + m.threads.emptiness()}))
	}
	return lines
}

func (t *threads) emptiness() string {
	switch {
	case !t.known:
		return "Looking …"
	case len(t.rows) > 0:
		return "No thread is like that. esc shows all."
	}
	return "No thread has run in this project yet: rye-mcp run DIRECTIVE"
}

func (c division) titles() string {
	text := strings.Repeat(" ", 1+signWidth) + padded("THREAD", c.name) + padded("STATE", stateWidth)
	if c.turns {
		text += padded("TURNS", turnsWidth)
	}
	text += padded("OF LIMIT", barWidth) + " " + padded("SPEND", spendWidth)
	if c.full {
		text += padded("CTX", fullWidth)
	}
	if c.age {
		text += padded("AGE", ageWidth)
	}
	if c.words > 0 {
		text += padded("LAST WORDS", c.words)
	}
	return text
}

func (m *Model) entryLine(e entry, chosen bool, c division) string {
	mark := " "
	if chosen {
		mark = ">"
	}
	spans := []span{{m.style.text, mark}}
	if e.ask {
		spans = append(spans, m.askSpans(e.row)...)
	} else {
		spans = append(spans, m.rowSpans(e, c)...)
	}
	if !chosen {
		return lineOf(m.width, spans...)
	}
	var text strings.Builder // one style for all of it, and to the end
	for _, s := range spans {
		text.WriteString(s.text)
	}
	look := m.style.chosen
	if m.onPage {
		look = m.style.title
	}
	return lineOf(m.width, span{look, padded(text.String(), m.width)})
}

// askSpans is a question above the tree: how long there is to answer it, and what it is.
func (m *Model) askSpans(row *board.Row) []span {
	q := row.Question
	text, _, _ := strings.Cut(strings.TrimSpace(q.Text), "\n")
	left := fmt.Sprintf("%s, then %s", until(m.now, q.DeadlineAt), plain.Line(string(q.Default)))
	return []span{
		{m.style.asks, "? "}, {m.style.title, shorten(nameOf(row), 28)}, {m.style.asks, "  " + left},
		{m.style.text, "  " + plain.Line(text)},
	}
}

// until is how long it is to a time.
func until(now, at time.Time) string {
	left := at.Sub(now).Round(second)
	switch {
	case left <= 0:
		return "time is up"
	case left < time.Hour:
		return fmt.Sprintf("%d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
	case left < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm left", int(left.Hours()), int(left.Minutes())%60)
	}
	return fmt.Sprintf("%d days left", int(left.Hours()/24))
}

// rowSpans is a thread in the tree.
func (m *Model) rowSpans(e entry, c division) []span {
	row := e.row
	word, sign, look := m.style.stateOf(row)
	name := labelOf(row)
	if e.hidden > 0 {
		name = fmt.Sprintf("[+%d] %s", e.hidden, name)
	}
	prefix := shorten(e.prefix, c.name/2)
	spans := []span{
		{look, padded(sign, signWidth)}, {m.style.rule, prefix}, {m.style.text, padded(name, c.name-columns(prefix)-1) + " "},
		{look, padded(word, stateWidth)},
	}
	if c.turns {
		spans = append(spans, span{m.style.text, padded(turnsOf(row), turnsWidth)})
	}
	spans = append(spans, bar(row.Budget, barWidth, m.style)...)
	spans = append(spans, span{m.style.text, " " + padded(row.TreeSpend.String(), spendWidth)})
	if c.full {
		spans = append(spans, span{m.style.text, padded(fullness(row.Context), fullWidth)})
	}
	if c.age {
		spans = append(spans, span{m.style.dim, padded(plain.Age(m.now.Sub(row.CreatedAt)), ageWidth)})
	}
	if c.words > 0 {
		spans = append(spans, span{m.style.dim, shorten(lastWords(row), c.words)})
	}
	return spans
}

// labelOf is the name of a thread in the tree, where one was given, and else its id.
func labelOf(row *board.Row) string {
	label := nameOf(row)
	if row.Links > 1 {
		label += fmt.Sprintf(" (%d threads)", row.Links)
	}
	if row.Kind == thread.KindSet && row.Entries != nil {
		label += fmt.Sprintf(" %d/%d", row.Entries.Completed+row.Entries.Failed, row.Entries.Items)
	}
	return label
}

func turnsOf(row *board.Row) string {
	if row.Kind == thread.KindSet {
		return ""
	}
	if row.Limits == nil || row.Limits.Turns <= 0 {
		return fmt.Sprint(row.Turns)
	}
	return fmt.Sprintf("%d/%d", row.Turns, row.Limits.Turns)
}

func fullness(c *board.Context) string {
	if c == nil || c.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", min(999, 100*c.Used/c.Window))
}

// lastWords are those of a thread, or why it has ended.
func lastWords(row *board.Row) string {
	if row.Error != nil {
		return plain.Line(row.Error.Message)
	}
	return plain.Line(row.LastWords)
}

// bar is the money of a thread and all below it: spent, reserved, left.
func bar(b *board.Budget, width int, s styles) []span {
	if b == nil || b.Limit <= 0 {
		return []span{{s.dim, strings.Repeat(" ", width)}}
	}
	cells := func(m thread.Micros) int {
		if m <= 0 {
			return 0
		}
		if m >= b.Limit {
			return width
		}
		return max(1, int(int64(m)*int64(width)/int64(b.Limit))) // something is never nothing
	}
	spent := cells(b.Spent)
	reserved := min(cells(b.Reserved), width-spent)
	look := s.good
	if b.Spent*10 >= b.Limit*9 {
		look = s.bad
	}
	return []span{
		{look, strings.Repeat("█", spent)}, {s.asks, strings.Repeat("▒", reserved)}, {s.rule, strings.Repeat("░", width-spent-reserved)},
	}
}

// ruled is a line across the screen with a title in it.
func (m *Model) ruled(look style, title string) string {
	title = shorten(title, max(0, m.width-6))
	return lineOf(m.width, span{m.style.rule, "── "}, span{look, title}, span{m.style.rule, " " + strings.Repeat("─", max(0, m.width-4-columns(title)))})
}
