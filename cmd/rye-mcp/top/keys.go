package top

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// press takes a key.
func (m *Model) press(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	}
	switch m.mode {
	case filtering:
		return m.pressFilter(msg)
	case raising, steering, interrupting, resuming:
		return m.pressInput(msg)
	case answering:
		return m.pressAnswer(msg)
	case cancelling:
		return m.pressCancel(msg)
	case helping:
		m.pressHelp(msg.String())
		return nil
	case noticing:
		m.mode = normal
		if slices.Contains([]string{"q", "esc", "m", "enter", "space"}, msg.String()) {
			return nil
		}
	case normal:
	}
	if m.onPage && m.pressPage(msg.String()) {
		return nil
	}
	return m.pressList(msg.String())
}

// pressList moves the cursor, or begins an action.
func (m *Model) pressList(key string) tea.Cmd {
	switch key {
	case "up", "k":
		return m.move(-1)
	case "down", "j":
		return m.move(1)
	case "pgup", "ctrl+b":
		return m.move(-max(1, m.listed))
	case "pgdown", "ctrl+f":
		return m.move(max(1, m.listed))
	case "home", "g":
		return m.move(-len(m.list))
	case "end", "G":
		return m.move(len(m.list))
	case "n":
		return m.nextAsking()
	case "left", "h":
		return m.fold()
	case "right", "l":
		return m.unfold()
	case "space":
		if row := m.row(); row != nil && m.threads.folded[row.Key] {
			return m.unfold()
		}
		return m.fold()
	case "f":
		m.threads.show = m.threads.show.next()
		return m.arrange()
	}
	return m.pressView(key)
}

// pressView changes what is shown.
func (m *Model) pressView(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "tab":
		m.onPage = !m.onPage
	case "enter", "z":
		m.zoomed = !m.zoomed
		m.onPage = m.zoomed
	case "/":
		m.mode, m.input = filtering, newInput(m.threads.filter)
	case "?":
		m.mode, m.helpFrom = helping, 0
	case "m":
		m.mode = noticing
	case "esc":
		return m.leave()
	default:
		return m.begin(key)
	}
	return nil
}

// pressHelp scrolls the help; any other key puts it away.
func (m *Model) pressHelp(key string) {
	switch key {
	case "up", "k":
		m.helpFrom--
	case "down", "j":
		m.helpFrom++
	case "pgup", "home":
		m.helpFrom = 0
	case "pgdown", "end", "space":
		m.helpFrom = len(helpText())
	default:
		m.mode = normal
	}
}

// leave goes back one step: what was said, the page, the filter.
func (m *Model) leave() tea.Cmd {
	switch {
	case m.showSaid:
		m.showSaid = false
	case m.zoomed || m.onPage:
		m.zoomed, m.onPage, m.scroll = false, false, 0
	case m.threads.filter != "" || m.threads.show != everything:
		m.threads.filter, m.threads.show = "", everything
		return m.arrange()
	}
	return nil
}

// begin starts an action on the chosen thread.
func (m *Model) begin(key string) tea.Cmd {
	row := m.row()
	if row == nil {
		return nil
	}
	over := row.Status.Terminal()
	m.target, m.asked = row.Key, ""
	switch key {
	case "a":
		if row.Question == nil {
			m.refuse(row, "asks nothing", "n goes to the next thread that asks")
			return nil
		}
		m.mode, m.asked = answering, row.Question.ID
	case "c":
		if over && m.threads.unfinishedBelow(row.Key) == 0 {
			m.refuse(row, "has ended", "r resumes it")
			return nil
		}
		m.mode = cancelling
	case "s", "S":
		if over {
			m.refuse(row, "has ended and reads nothing", "r resumes it")
			return nil
		}
		m.mode, m.input = steering, input{}
		if key == "S" {
			m.mode = interrupting
		}
	case "r":
		if !over {
			m.refuse(row, "has not ended", "s tells it something")
			return nil
		}
		m.mode, m.input = resuming, input{}
	}
	return nil
}

func (m *Model) refuse(row *board.Row, why, try string) {
	m.say(Outcome{Error: fmt.Sprintf("%s %s", nameOf(row), why), Try: try})
}

// pressFilter changes the filter with each key.
func (m *Model) pressFilter(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "enter":
		m.mode = normal
		return nil
	case "esc":
		m.mode, m.input = normal, input{}
	default:
		if !m.input.press(msg) {
			return nil
		}
	}
	m.threads.filter = m.input.String()
	return m.arrange()
}

// paste types what was pasted where something is typed.
func (m *Model) paste(text string) {
	switch m.mode {
	case raising, steering, interrupting, resuming:
		m.input.insert(text)
	case filtering:
		m.input.insert(text)
		m.threads.filter = m.input.String()
		m.arrange()
	case normal, answering, cancelling, helping, noticing:
	}
}

// pressCancel asks once more, as what was cancelled is not undone.
func (m *Model) pressCancel(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "y", "Y":
		row := m.targetRow()
		if row == nil {
			return nil
		}
		id := row.ThreadID
		return m.do(func() Outcome { return m.actions.Cancel(id) })
	case "n", "N", "esc", "q":
	default:
		return nil
	}
	m.mode = normal
	return nil
}

// pressInput edits a line, and acts with it.
func (m *Model) pressInput(msg tea.KeyPressMsg) tea.Cmd {
	switch key := msg.String(); {
	case key == "esc":
		m.mode = normal
		return nil
	case key != "enter":
		m.input.press(msg)
		return nil
	}
	row := m.targetRow()
	if row == nil {
		return nil
	}
	text, id := m.input.String(), row.ThreadID
	if m.mode == raising {
		return m.raise(row, text)
	}
	if plain.Line(text) == "" {
		m.mode = normal
		return nil
	}
	interrupt, resume := m.mode == interrupting, m.mode == resuming
	return m.do(func() Outcome {
		if resume {
			return m.actions.Resume(id, text)
		}
		return m.actions.Steer(id, text, interrupt)
	})
}

// targetRow is the thread that an action was begun for, wherever the cursor stands now. When
// it is gone that is said, and the action ends.
func (m *Model) targetRow() *board.Row {
	row := m.threads.rows[m.target]
	if row == nil {
		m.mode = normal
		m.say(Outcome{Error: "the thread is not on the board any more", Try: "rye-mcp threads list"})
	}
	return row
}

// at is where the cursor stands in the list; below 0: its line is gone.
func (m *Model) at() int { return m.indexOf(m.chosen) }

func (m *Model) indexOf(c choice) int {
	for i, e := range m.list {
		if e.choice() == c {
			return i
		}
	}
	return -1
}

// row is the chosen thread; nil where there is none.
func (m *Model) row() *board.Row {
	if at := m.at(); at >= 0 {
		return m.list[at].row
	}
	return nil
}

func (m *Model) move(by int) tea.Cmd {
	if len(m.list) == 0 {
		return nil
	}
	at := max(0, min(len(m.list)-1, m.at()+by))
	m.chosen = m.list[at].choice()
	return m.moved()
}

// nextAsking goes to the next line of a thread that asks.
func (m *Model) nextAsking() tea.Cmd {
	at := m.at()
	for i := range m.list {
		next := (at + 1 + i) % len(m.list)
		if m.list[next].ask {
			m.chosen = m.list[next].choice()
			return m.moved()
		}
	}
	return nil
}

// fold hides what is below the chosen thread; where nothing is, or it is hidden, the
// cursor goes up.
func (m *Model) fold() tea.Cmd {
	row := m.row()
	if row == nil {
		return nil
	}
	if m.threads.hasChildren(row.Key) && !m.threads.folded[row.Key] {
		m.threads.folded[row.Key] = true
		return m.arrange()
	}
	if above := m.indexOf(choice{key: row.Parent}); above >= 0 {
		m.chosen = m.list[above].choice()
	}
	return m.moved()
}

func (m *Model) unfold() tea.Cmd {
	if row := m.row(); row != nil {
		delete(m.threads.folded, row.Key)
	}
	return m.arrange()
}

func (t *threads) hasChildren(key thread.ID) bool {
	for _, row := range t.rows {
		if row.Parent == key && row.Key != key {
			return true
		}
	}
	return false
}

// pressPage moves what the thread did, and reports whether the key does.
func (m *Model) pressPage(key string) bool {
	page := max(1, m.height/2)
	switch key {
	case "up", "k":
		m.scroll++
	case "down", "j":
		m.scroll--
	case "pgup", "ctrl+b":
		m.scroll += page
	case "pgdown", "ctrl+f", "space":
		m.scroll -= page
	case "home", "g":
		m.scroll = maxLines
	case "end", "G":
		m.scroll = 0
	default:
		return false
	}
	m.scroll = max(0, m.scroll)
	return true
}

// click chooses the line of the list that was clicked.
func (m *Model) click(msg tea.MouseClickMsg) tea.Cmd {
	if m.mode != normal || msg.Button != tea.MouseLeft || m.listed == 0 {
		return nil
	}
	at := m.offset + msg.Y - m.listTop
	if msg.Y < m.listTop || msg.Y >= m.listTop+m.listed || at < 0 || at >= len(m.list) {
		m.onPage = msg.Y >= m.listTop+m.listed
		return nil
	}
	m.onPage = false
	m.chosen = m.list[at].choice()
	return m.moved()
}

// wheel moves what is below the pointer.
func (m *Model) wheel(msg tea.MouseWheelMsg) tea.Cmd {
	by := 3
	if msg.Button == tea.MouseWheelUp {
		by = -3
	}
	if m.zoomed || msg.Y >= m.listTop+m.listed {
		m.scroll = max(0, m.scroll-by)
		return nil
	}
	if m.mode != normal {
		return nil
	}
	return m.move(by)
}
