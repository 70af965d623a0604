package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var update = flag.Bool("update", false, "rewrite golden files")

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// acted is what was asked for.
type acted struct {
	calls []string
	looks []thread.ID
	out   Outcome
}

func (a *acted) did(format string, args ...any) Outcome {
	a.calls = append(a.calls, fmt.Sprintf(format, args...))
	return a.out
}

func (a *acted) Answer(in Answer) Outcome {
	return a.did("answer %s %s %s %v", in.ThreadID, in.QuestionID, in.Decision, in.Limits)
}

func (a *acted) Edit(in Answer) tea.Cmd {
	return func() tea.Msg { return OutcomeMsg(a.did("edit %s %s", in.ThreadID, in.QuestionID)) }
}

func (a *acted) Cancel(id thread.ID) Outcome { return a.did("cancel %s", id) }

func (a *acted) Steer(id thread.ID, message string, interrupt bool) Outcome {
	return a.did("steer %s %q %v", id, message, interrupt)
}

func (a *acted) Resume(id thread.ID, message string) Outcome {
	return a.did("resume %s %q", id, message)
}

func (a *acted) Look(id thread.ID) { a.looks = append(a.looks, id) }

// evil is what names and texts of others may hold.
const evil = "\x1b[2J\x1b]8;;http://evil.example\x07<img onerror=x>\u202egnp\r\nnext"

// scene is a board with a thread of every kind.
func scene() board.Board {
	at := func(minutes int) time.Time { return noon().Add(-time.Duration(minutes) * time.Minute) }
	limits := func(turns int) *thread.Limits { return &thread.Limits{Turns: turns, Spend: 500_000} }
	ended := at(50)
	question := &board.Question{
		ID: "q1", Kind: thread.AskLimit, Code: "turns_exceeded", Text: "Thread review-17 has reached its limit of turns: 12 of 12.\nWhat shall it do?" + evil,
		Options: []thread.Decision{thread.Raise, thread.Finish, thread.Stop}, Default: thread.Stop, DeadlineAt: noon().Add(272 * time.Second),
		Means:  map[thread.Decision]string{thread.Raise: "go on under new limits", thread.Finish: "one last turn to return what it has", thread.Stop: "the limit ends it"},
		Limits: map[string]float64{"turns": 12}, Most: map[string]float64{"turns": 20},
	}
	handoff := &board.Question{
		ID: "q2", Kind: thread.AskHandoff, Text: "May it hand over?", Summary: "What was done: all of it.", Options: []thread.Decision{thread.Accept, thread.Decline},
		Default: thread.Accept, DeadlineAt: noon().Add(90 * time.Minute), Means: map[thread.Decision]string{thread.Accept: "it hands over", thread.Decline: "it goes on"},
	}
	rows := []*board.Row{
		{
			Key: "lead-1", ThreadID: "lead-1-2", Links: 2, Kind: thread.KindDirective, Directive: "lead", Name: "Lead the work", Status: thread.Running, Waits: true,
			Model: "anthropic/claude-sonnet-4-5", Turns: 3, Limits: limits(40), Spend: 31_000, TreeSpend: 281_000, CreatedAt: at(34), LastWords: "Now I wait for the three of them.",
			Budget:  &board.Budget{Limit: 1_000_000, Spent: 281_000, Reserved: 400_000, Left: 319_000},
			Context: &board.Context{Used: 61_000, Window: 200_000}, Verified: board.Unknown,
		},
		{
			Key: "review-17", ThreadID: "review-17", Links: 1, Parent: "lead-1", Kind: thread.KindDirective, Directive: "review", Name: "Review the parser", Status: thread.Running,
			Asks: true, Question: question, Model: "anthropic/claude-sonnet-4-5", Worker: "build\x1b[2J-1", Turns: 12, Limits: limits(12), Spend: 120_000, TreeSpend: 120_000, CreatedAt: at(31),
			Budget: &board.Budget{Limit: 500_000, Spent: 120_000, Left: 380_000}, Context: &board.Context{Used: 182_000, Window: 200_000}, LastWords: "I would look at two more files.",
		},
		{
			Key: "evil-1", ThreadID: thread.ID("evil-1" + evil), Links: 1, Parent: "lead-1", Kind: thread.KindDirective, Name: evil, Status: thread.Running, Model: "m" + evil,
			Turns: 1, Limits: limits(12), Spend: 450_000, TreeSpend: 480_000, CreatedAt: at(29), LastWords: evil, Unread: 2, Warnings: []string{"careful" + evil},
			Budget: &board.Budget{Limit: 500_000, Spent: 480_000, Left: 20_000},
		},
		{
			Key: "deploy-3", ThreadID: "deploy-3", Links: 1, Parent: "review-17", Kind: thread.KindDirective, Status: thread.Running, Asks: true, Question: handoff,
			Turns: 8, Limits: limits(30), TreeSpend: 44_000, CreatedAt: at(12),
		},
		{
			Key: "wide-日本語", ThreadID: "wide-日本語", Links: 1, Parent: "lead-1", Kind: thread.KindDirective, Status: thread.Created, Queued: true, Limits: limits(12), CreatedAt: at(2),
			Budget: &board.Budget{Limit: 500_000, Left: 500_000},
		},
		{
			Key: "batch-1", ThreadID: "batch-1", Links: 1, Kind: thread.KindSet, Status: thread.Running, CreatedAt: at(20), TreeSpend: 10_000,
			Entries: &board.Entries{Items: 40, Completed: 10, Failed: 2, Waiting: 20, Working: 8},
		},
		{
			Key: "old-1", ThreadID: "old-1", Links: 1, Kind: thread.KindDirective, Status: thread.Completed, Turns: 4, Limits: limits(12), TreeSpend: 90_000, CreatedAt: at(60),
			EndedAt: &ended, LastWords: "All is well.", Budget: &board.Budget{Limit: 500_000, Spent: 90_000}, Verified: board.Yes,
		},
		{
			Key: "bad-1", ThreadID: "bad-1", Links: 1, Kind: thread.KindDirective, Status: thread.Error, Turns: 4, CreatedAt: at(61), EndedAt: &ended, Verified: board.No,
			Error: &board.Error{Code: "provider", Message: "the provider refused the key" + evil}, Damaged: []string{"transcript is gone"},
		},
	}
	return board.Board{
		Version: "1", Whole: true, At: noon(), Rows: rows, Omitted: 12,
		Totals: board.Totals{Working: 4, Asking: 2, Queued: 1, Ended: 2, Spend: 381_000, Reserved: 400_000},
	}
}

// made is a view of the scene, as large as is told, with a page of the chosen thread.
func made(t *testing.T, a *acted, width, height int, opts Options) *Model {
	t.Helper()
	opts.Project, opts.Now = "project", noon()
	m := New(a, opts)
	feed(m, tea.WindowSizeMsg{Width: width, Height: height}, BoardMsg(scene()))
	settled(m)
	feed(m, TailMsg{ID: m.page.id, Pieces: []tail.Piece{
		{Kind: tail.Head, Text: "● review, model scripted/general, at most $0.5000 and 12 turns"},
		{Kind: tail.Prompt, Text: "« Review the parser. (14 lines)"},
		{Kind: tail.Words, Text: "I read the parser first, all of it, and then the tests that go with it, "}, {Kind: tail.Words, Text: "as they say what it is for.\n\tIndented.\n"},
		{Kind: tail.Turn, Text: "· turn 1: 12.3k tokens in, 80 out, $0.0026"},
		{Kind: tail.Call, Text: "→ rye_file_system_read parser.go"}, {Kind: tail.Result, Text: "← rye_file_system_read 12.3 KiB: package parser"},
		{Kind: tail.Call, Text: "→ rye_bash go test ./..."}, {Kind: tail.Failure, Text: "✗ rye_bash go test ./...: exit status 1"},
		{Kind: tail.Question, Text: "? Thread review-17 has reached its limit of turns: 12 of 12. (2 lines)"},
	}})
	return m
}

// feed hands messages to the view, and what the commands of those bring that need no time.
func feed(m *Model, msgs ...tea.Msg) {
	for _, msg := range msgs {
		m.Update(msg)
	}
}

// settled lets the cursor have stood still.
func settled(m *Model) { m.Update(lookMsg{m.moves}) }

// keyOfName is the message of a key by its name.
func keyMsg(name string) tea.KeyPressMsg {
	codes := map[string]rune{
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab,
		"backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
	}
	if code, ok := codes[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if name == "space" {
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// pressed presses keys, and lets what was begun come to its end.
func pressed(m *Model, names ...string) (quit bool) {
	for _, name := range names {
		_, cmd := m.Update(keyMsg(name))
		if cmd == nil {
			continue
		}
		if name == "q" || name == "ctrl+c" {
			_, quit = cmd().(tea.QuitMsg)
			return quit
		}
		if m.busy > 0 {
			m.Update(cmd())
		}
		settled(m)
	}
	return false
}

func typed(m *Model, text string) {
	for _, r := range text {
		pressed(m, string(r))
	}
}

// compare holds a screen against the one in testdata.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}
