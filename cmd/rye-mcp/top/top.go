// Package top is the terminal view of the threads of a project: what asks first, the tree
// with money and context, what the chosen thread does now, and what a person can do about
// it. Boards and transcripts come in as messages, and what is done goes out as calls of
// [Actions]; the package reads no clock, no file and no store.
package top

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Actions are what a person can do here. They may take long, and are called beside the
// view; the program ends what has not ended with it.
type Actions interface {
	Answer(Answer) Outcome
	// Edit lets the person edit the summary that a handoff proposes, and accepts with it.
	Edit(Answer) tea.Cmd
	Cancel(thread.ID) Outcome
	Steer(id thread.ID, message string, interrupt bool) Outcome
	Resume(id thread.ID, message string) Outcome
	// Look makes what the thread does come in as [TailMsg], until the next call; of no
	// thread with an empty id.
	Look(thread.ID)
}

// Answer is what a person has decided about a question.
type Answer struct {
	ThreadID   thread.ID
	QuestionID string // that was shown: the answer is for no other
	Decision   thread.Decision
	Limits     map[string]float64 // of a Raise
}

// Outcome is how an action has ended.
type Outcome struct {
	Said  string   // what came of it, in a line
	Lines []string // more of it, such as receipts
	Error string   // empty: it worked
	Try   string   // what to do about Error
}

// The messages from outside.
type (
	// BoardMsg is a board, or what has changed of the one before.
	BoardMsg board.Board
	// LostMsg says that no more boards come, and why.
	LostMsg struct{ Error, Try string }
	// TailMsg is what the thread that is looked at has done.
	TailMsg struct {
		ID     thread.ID
		Pieces []tail.Piece
	}
	// OutcomeMsg is how an action has ended.
	OutcomeMsg Outcome
	// tickMsg moves the clock that deadlines are shown by.
	tickMsg time.Time
	// lookMsg comes when the cursor has stood still.
	lookMsg struct{ moves int }
)

// Options are what the view is made with.
type Options struct {
	Project string // a name for the head line
	Colors  bool
	Light   bool // the terminal is, as far as is known; it is asked
	Mouse   bool
	Now     time.Time
}

const (
	second = time.Second
	// settle is how long the cursor stands still before a transcript is read.
	settle = 120 * time.Millisecond
	// maxSaid is how many outcomes are kept to be read again.
	maxSaid = 100
)

// Model is the state of the view.
type Model struct {
	actions Actions
	opts    Options
	style   styles
	now     time.Time
	width   int
	height  int

	threads  threads
	list     []entry
	chosen   choice
	offset   int // first entry of the list that is shown
	moves    int // of the cursor, to know when it stands still
	page     page
	scroll   int  // lines of the page below those that are shown
	onPage   bool // keys move the page and not the list
	zoomed   bool // the page alone is shown
	listed   int  // lines that the last view had for the list
	listTop  int  // line of the view that the list begins at
	helpFrom int  // first line of the help that is shown
	mode     mode
	target   thread.ID // key of the thread that the mode is about
	asked    string    // id of the question that is being answered
	input    input
	busy     int // actions on their way
	said     []Outcome
	showSaid bool // the last of said is on the screen
	lost     *LostMsg
}

// mode is what the keys mean.
type mode int

const (
	normal     mode = iota
	filtering       // the input is the filter
	answering       // one of the options of a question
	raising         // the input is new limits
	cancelling      // yes or no
	steering        // the input is a message
	interrupting
	resuming
	helping  // the keys are shown
	noticing // the last words are shown
)

// New returns the view of a project of which nothing is known yet.
func New(actions Actions, opts Options) *Model {
	return &Model{actions: actions, opts: opts, style: newStyles(opts.Colors, opts.Light), now: opts.Now, threads: newThreads()}
}

// Init asks for the colour of the terminal, and starts the clock.
func (m *Model) Init() tea.Cmd {
	if !m.opts.Colors {
		return tick()
	}
	return tea.Batch(tick(), tea.RequestBackgroundColor)
}

func tick() tea.Cmd { return tea.Tick(second, func(at time.Time) tea.Msg { return tickMsg(at) }) }

// Update takes one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.style = newStyles(m.opts.Colors, !msg.IsDark())
	case tickMsg:
		m.now = time.Time(msg)
		return m, tick()
	case BoardMsg:
		return m, m.take(board.Board(msg))
	case LostMsg:
		m.lost = &msg
	case lookMsg:
		if msg.moves == m.moves {
			m.look()
		}
	case TailMsg:
		m.addPieces(msg)
	case OutcomeMsg:
		m.conclude(Outcome(msg))
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseClickMsg:
		return m, m.click(msg)
	case tea.MouseWheelMsg:
		return m, m.wheel(msg)
	}
	return m, nil
}

// take makes a board, or a patch, what is shown. The cursor stays on its thread.
func (m *Model) take(b board.Board) tea.Cmd {
	m.threads.take(b)
	m.now, m.lost = later(m.now, b.At), nil
	return m.arrange()
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// arrange makes the list anew, and keeps the cursor where it was.
func (m *Model) arrange() tea.Cmd {
	before := m.at()
	m.list = m.threads.list()
	if m.at() < 0 && len(m.list) > 0 {
		at := max(0, min(before, len(m.list)-1))
		if other := m.indexOf(choice{key: m.chosen.key, ask: !m.chosen.ask}); other >= 0 {
			at = other // it asks now, or does not any more
		}
		m.chosen = m.list[at].choice()
	}
	return m.moved()
}

// moved asks for the transcript of the chosen thread when that is another one.
func (m *Model) moved() tea.Cmd {
	row := m.row()
	id := thread.ID("")
	if row != nil {
		id = row.ThreadID
	}
	if id == m.page.id {
		return nil
	}
	if row != nil && row.Key == m.page.key { // continued by another thread: its page goes on
		m.page.id = id
		m.actions.Look(id)
		return nil
	}
	m.moves++
	moves := m.moves
	return tea.Tick(settle, func(time.Time) tea.Msg { return lookMsg{moves} })
}

// look opens the page of the chosen thread.
func (m *Model) look() {
	m.page, m.scroll = page{}, 0
	if row := m.row(); row != nil {
		m.page = page{id: row.ThreadID, key: row.Key}
	}
	m.actions.Look(m.page.id)
}

func (m *Model) addPieces(msg TailMsg) {
	if msg.ID != m.page.id {
		return
	}
	lines := len(m.page.lines)
	m.page.add(msg.Pieces)
	if m.scroll > 0 { // the lines that are read stay where they are
		m.scroll += max(0, len(m.page.lines)-lines)
	}
}

// conclude tells how an action has ended.
func (m *Model) conclude(o Outcome) {
	m.busy = max(0, m.busy-1)
	m.say(o)
	if len(o.Lines) > 0 && m.mode == normal {
		m.mode = noticing
	}
}

// say shows an outcome, and keeps it to be read again.
func (m *Model) say(o Outcome) {
	m.said = append(m.said, o)
	if len(m.said) > maxSaid {
		m.said = m.said[len(m.said)-maxSaid:]
	}
	m.showSaid = true
}

// do makes a call beside the view.
func (m *Model) do(call func() Outcome) tea.Cmd {
	m.busy++
	m.mode = normal
	return func() tea.Msg { return OutcomeMsg(call()) }
}
