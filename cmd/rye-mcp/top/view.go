package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
)

// span is a piece of a line. Its text is fit for a terminal.
type span struct {
	style style
	text  string
}

// lineOf puts spans into a line of at most so many columns; the rest is cut.
func lineOf(width int, spans ...span) string {
	var b strings.Builder
	for _, s := range spans {
		text := shorten(s.text, width)
		if text == "" {
			continue
		}
		width -= columns(text)
		b.WriteString(s.style.Render(text))
		if width <= 0 || text != s.text {
			break
		}
	}
	return b.String()
}

// padded is a text in exactly so many columns.
func padded(text string, width int) string {
	text = shorten(text, width)
	return text + strings.Repeat(" ", max(0, width-columns(text)))
}

// nameOf is what a thread is called on one line.
func nameOf(row *board.Row) string { return plain.Line(string(row.ThreadID)) }

// View draws everything. It fits the terminal, however small that is.
func (m *Model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.opts.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.width <= 0 || m.height <= 0 {
		return v
	}
	lines, cursor := m.draw()
	v.SetContent(strings.Join(lines, "\n"))
	v.Cursor = cursor
	return v
}

// draw are the lines of the screen, and the cursor where something is typed.
func (m *Model) draw() (lines []string, cursor *tea.Cursor) {
	foot, at := m.foot()
	foot = foot[max(0, len(foot)-m.height):] // the last of them says most
	room := m.height - len(foot)
	if room > 0 {
		lines = append(lines, m.head())
		room--
	}
	lines = append(lines, m.body(room, len(lines))...)
	for len(lines) < m.height-len(foot) {
		lines = append(lines, "")
	}
	if at >= 0 && at < m.width {
		cursor = tea.NewCursor(at, m.height-1)
	}
	return append(lines, foot...), cursor
}

// body is what is between the first line and the last ones.
func (m *Model) body(room, top int) []string {
	m.listed, m.listTop = 0, top
	switch m.mode {
	case helping:
		return m.help(room)
	case noticing:
		return clip(m.notices(room), room)
	case normal, filtering, answering, raising, cancelling, steering, interrupting, resuming:
	}
	if m.zoomed || room < 4 {
		return clip(m.detail(room), room)
	}
	height := m.listHeight(room)
	lines := m.listLines(height)
	return append(lines, m.detail(room-len(lines))...)
}

// listHeight is how much of the room the list gets: what it needs, at most three fifths,
// and less where the keys are about what is below it.
func (m *Model) listHeight(room int) int {
	most := room * 3 / 5
	if m.onPage || m.mode == answering || m.mode == raising {
		most = room / 3
	}
	return max(2, min(len(m.list)+1, most))
}

func clip(lines []string, room int) []string { return lines[:min(len(lines), max(0, room))] }

// head is the first line: how everything stands.
func (m *Model) head() string {
	t := m.threads.totals
	spans := []span{{m.style.title, " rye-mcp top "}, {m.style.dim, plain.Line(m.opts.Project) + "  "}}
	if t.Asking > 0 {
		spans = append(spans, span{m.style.asks, fmt.Sprintf("%d asking", t.Asking)}, span{m.style.dim, " · "})
	}
	text := fmt.Sprintf("%d working · %d queued · %s", t.Working, t.Queued, t.Spend)
	if t.Reserved > 0 {
		text += fmt.Sprintf(" + %s reserved", t.Reserved)
	}
	spans = append(spans, span{m.style.text, text}, span{m.style.dim, fmt.Sprintf(" · %d ended", t.Ended)})
	if m.threads.show != everything {
		spans = append(spans, span{m.style.asks, " · only " + m.threads.show.String()})
	}
	if m.threads.filter != "" && m.mode != filtering {
		spans = append(spans, span{m.style.asks, " · /" + plain.Line(m.threads.filter)})
	}
	return lineOf(m.width, spans...)
}

// foot are the last lines: what was said, and which keys there are or what is typed.
func (m *Model) foot() (lines []string, cursor int) {
	lines = m.lastSaid()
	prompt := m.prompt()
	if prompt == "" {
		return append(lines, lineOf(m.width, span{m.style.dim, m.keys()})), -1
	}
	prompt = shorten(prompt, m.width/2)
	text, at := m.input.shown(m.width - columns(prompt))
	line := lineOf(m.width, span{m.style.asks, prompt}, span{m.style.text, text})
	return append(lines, line), columns(prompt) + at
}

// prompt stands before what is typed; empty where nothing is.
func (m *Model) prompt() string {
	name := ""
	if row := m.threads.rows[m.target]; row != nil {
		name = shorten(nameOf(row), 24)
	}
	switch m.mode {
	case filtering:
		return "/"
	case raising:
		return "New limits: "
	case steering:
		return "Tell " + name + ": "
	case interrupting:
		return "Interrupt " + name + ": "
	case resuming:
		return "Resume " + name + ": "
	case normal, answering, cancelling, helping, noticing:
	}
	return ""
}

// keys are the ones that can be pressed now.
func (m *Model) keys() string {
	switch m.mode {
	case answering:
		if row := m.threads.rows[m.target]; row != nil && row.Question != nil {
			var keys []string
			for _, o := range optionsOf(row.Question) {
				keys = append(keys, o.key+" "+plain.Line(o.name))
			}
			return " " + strings.Join(keys, " · ") + " · esc leaves it"
		}
		return " esc goes back"
	case cancelling:
		return " " + m.cancelQuestion() + " y yes · n no"
	case helping:
		return " ↑↓ scroll · esc goes back"
	case noticing:
		return " esc goes back"
	case normal, filtering, raising, steering, interrupting, resuming:
	}
	busy := ""
	if m.busy > 0 {
		busy = "working … · "
	}
	return " " + busy + m.usualKeys()
}

func (m *Model) usualKeys() string {
	row := m.row()
	switch {
	case m.onPage:
		return "↑↓ scroll · end follows · esc back · ? help · q quit · tab list"
	case row == nil:
		return "f shows others · / filter · ? help · q quit"
	case row.Question != nil:
		return "a answer · c cancel · s tell · ? help · q quit · enter zoom"
	case row.Status.Terminal():
		return "r resume · / filter · ? help · q quit · n asking · f show · enter zoom"
	}
	return "s tell · c cancel · ? help · q quit · n asking · / filter · enter zoom"
}

func (m *Model) cancelQuestion() string {
	row := m.threads.rows[m.target]
	if row == nil {
		return "Cancel?"
	}
	below := ""
	if n := m.threads.unfinishedBelow(row.Key); n == 1 {
		below = " and the thread below it"
	} else if n > 1 {
		below = fmt.Sprintf(" and the %d threads below it", n)
	}
	return fmt.Sprintf("Cancel %s%s?", shorten(nameOf(row), max(8, m.width-30-len(below))), below)
}

// maxSaidLines is how many lines the last outcome takes at most.
const maxSaidLines = 4

// lastSaid is the last outcome, until it is put away.
func (m *Model) lastSaid() (lines []string) {
	if m.lost != nil {
		lines = append(lines, m.outcomeLines(Outcome{Error: m.lost.Error, Try: m.lost.Try})...)
	}
	if m.showSaid && len(m.said) > 0 && m.mode != noticing {
		lines = append(lines, m.outcomeLines(m.said[len(m.said)-1])...)
	}
	return clip(lines, maxSaidLines)
}

func (m *Model) outcomeLines(o Outcome) (lines []string) {
	put := func(look style, text string) {
		for _, line := range wrapHard(plain.Line(text), m.width-1) {
			lines = append(lines, lineOf(m.width, span{look, " " + line}))
		}
	}
	if o.Error != "" {
		put(m.style.bad, "Error: "+o.Error)
		if o.Try != "" {
			put(m.style.text, "Try:   "+o.Try)
		}
	}
	if o.Said != "" {
		put(m.style.good, o.Said)
	}
	return lines
}

// notices are all outcomes, the last one last.
func (m *Model) notices(room int) []string {
	var lines []string
	for _, o := range m.said {
		lines = append(lines, m.outcomeLines(o)...)
		for _, text := range o.Lines {
			lines = append(lines, lineOf(m.width, span{m.style.text, "   " + plain.Line(text)}))
		}
	}
	if len(lines) == 0 {
		lines = []string{lineOf(m.width, span{m.style.dim, " Nothing was said yet."})}
	}
	return lines[max(0, len(lines)-max(0, room)):]
}
