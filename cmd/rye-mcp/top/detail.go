package top

import (
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
)

// detail is the chosen thread: its facts, what it asks, and what it does.
func (m *Model) detail(room int) []string {
	row := m.row()
	if row == nil || room <= 0 {
		return nil
	}
	look := m.style.title
	title := nameOf(row)
	if m.onPage {
		title = "▼ " + title
	}
	if row.Name != "" && row.Name != string(row.ThreadID) {
		title += "  " + plain.Line(row.Name)
	}
	lines := []string{m.ruled(look, title)}
	facts := m.facts(row)
	if row.Question == nil {
		lines = append(lines, clip(facts, max(2, room/2))...)
	} else {
		asks := m.question(row.Question, max(5, room*2/3))
		lines = append(append(lines, clip(facts, max(1, room/2-len(asks)))...), asks...)
	}
	lines = clip(lines, room)
	return append(lines, m.pageLines(room-len(lines))...)
}

// facts are what a person wants to know of a thread beside what it does.
func (m *Model) facts(row *board.Row) (lines []string) {
	word, sign, look := m.style.stateOf(row)
	var parts []string
	if turns := turnsOf(row); turns != "" {
		parts = append(parts, "turn "+turns)
	}
	if row.Entries != nil {
		parts = append(parts, fmt.Sprintf("%d of %d items through, %d working, %d failed", row.Entries.Completed+row.Entries.Failed, row.Entries.Items, row.Entries.Working, row.Entries.Failed))
	}
	if row.Model != "" {
		parts = append(parts, plain.Line(row.Model))
	}
	if c := row.Context; c != nil {
		text := "context " + tail.Count(c.Used)
		if c.Window > 0 {
			text += fmt.Sprintf(" of %s (%s)", tail.Count(c.Window), fullness(c))
		}
		parts = append(parts, text)
	}
	if row.Worker != "" {
		parts = append(parts, "worker "+plain.Line(row.Worker))
	}
	if row.Unread > 0 {
		parts = append(parts, fmt.Sprintf("%d unread", row.Unread))
	}
	if row.Verified == board.No {
		parts = append(parts, "NOT as it was signed")
	}
	lines = append(lines, lineOf(m.width, span{look, " " + sign + " " + word}, span{m.style.dim, " · " + strings.Join(parts, " · ")}))
	if b := row.Budget; b != nil && b.Limit > 0 {
		spans := append([]span{{m.style.text, " "}}, bar(b, 2*barWidth, m.style)...)
		text := fmt.Sprintf(" %s spent · %s reserved · %s left of %s", b.Spent, b.Reserved, b.Left, b.Limit)
		lines = append(lines, lineOf(m.width, append(spans, span{m.style.dim, text})...))
	}
	if row.Error != nil {
		lines = append(lines, m.wrapped(m.style.bad, "✗ "+plain.Line(row.Error.Message), 3)...)
	}
	for _, damage := range row.Damaged {
		lines = append(lines, m.wrapped(m.style.bad, "✗ "+plain.Line(damage), 2)...)
	}
	for _, warning := range row.Warnings {
		lines = append(lines, m.wrapped(m.style.asks, "Warning: "+plain.Line(warning), 2)...)
	}
	return lines
}

// wrapped is a text on at most so many lines.
func (m *Model) wrapped(look style, text string, most int) (lines []string) {
	for i, line := range wrapHard(text, m.width-1) {
		if i == most {
			lines[most-1] = lineOf(m.width, span{look, " " + shorten(line, m.width-3) + " …"})
			break
		}
		lines = append(lines, lineOf(m.width, span{look, " " + line}))
	}
	return lines
}

// question is what a thread asks, with its answers; the text gives way to these.
func (m *Model) question(q *board.Question, room int) (lines []string) {
	text := q.Text
	if q.Summary != "" && !strings.Contains(text, q.Summary) {
		text += "\n" + q.Summary
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, m.wrapped(m.style.text, plain.Line(line), 4)...)
	}
	options := optionsOf(q)
	if room = max(1, room-len(options)-1); len(lines) > room {
		lines = lines[:room:room]
		if room > 1 {
			lines[room-1] = lineOf(m.width, span{m.style.dim, " … (enter shows more)"})
		}
	}
	lines = append(lines, lineOf(m.width, span{m.style.asks, fmt.Sprintf(" ? %s, then %s:", until(m.now, q.DeadlineAt), plain.Line(string(q.Default)))}))
	for _, o := range options {
		key := "a " + o.key
		if m.mode == answering {
			key = o.key
		}
		lines = append(lines, lineOf(m.width, span{m.style.asks, "   " + key + "  "}, span{m.style.title, plain.Line(o.name)}, span{m.style.dim, "  " + plain.Line(o.means)}))
	}
	return lines
}

// pageLines is what the thread does, its last lines last.
func (m *Model) pageLines(room int) (lines []string) {
	if room <= 0 {
		return nil
	}
	if len(m.page.lines) == 0 {
		text := " Nothing was said yet."
		if m.row() != nil && m.page.id != m.row().ThreadID {
			text = " …"
		}
		return []string{lineOf(m.width, span{m.style.dim, text})}
	}
	var shown []said
	shown, m.scroll = m.page.last(m.width-1, room, m.scroll)
	for _, line := range shown {
		lines = append(lines, lineOf(m.width, span{m.style.ofKind(line.kind), " " + line.text}))
	}
	if m.scroll > 0 && len(lines) > 0 {
		lines[len(lines)-1] = lineOf(m.width, span{m.style.asks, fmt.Sprintf(" … %d lines below; end goes there", m.scroll)})
	}
	return lines
}
