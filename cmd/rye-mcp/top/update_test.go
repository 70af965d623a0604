//nolint:dupword // keys are pressed several times
package top

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// What is pressed calls what a person wants of the thread that the cursor is on, and
// nothing else.
func TestActions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys  string
		calls string
		said  string // on the screen afterwards
	}{
		"raise as suggested":        {"a r enter", "answer review-17 q1 raise map[turns:20]", "done"},
		"raise otherwise":           {"a r ctrl+u text:turns=15,spend=0.7 enter", "answer review-17 q1 raise map[spend:0.7 turns:15]", "done"},
		"no limits":                 {"a r ctrl+u text:much enter", "", `"much" is not name=number`},
		"no limits, corrected":      {"a r ctrl+u text:much enter ctrl+u text:turns=13 enter", "answer review-17 q1 raise map[turns:13]", "done"},
		"an endless limit":          {"a r ctrl+u text:spend=inf enter", "", `"spend=inf" is not name=number`},
		"finish":                    {"a f", "answer review-17 q1 finish map[]", "done"},
		"stop":                      {"a s", "answer review-17 q1 stop map[]", "done"},
		"no answer":                 {"a esc", "", ""},
		"no such answer":            {"a x y z 1", "", "r raise"},
		"accept":                    {"n a a", "answer deploy-3 q2 accept map[]", "done"},
		"edit":                      {"n a e", "edit deploy-3 q2", "done"},
		"nothing asked":             {"G a", "", "bad-1 asks nothing"},
		"cancel":                    {"n n c y", "cancel review-17", "done"},
		"cancel after all not":      {"c n", "", ""},
		"cancel takes no other key": {"c x enter r", "", "y yes"},
		"cancel what has ended":     {"G c", "", "bad-1 has ended"},
		"steer":                     {"s text:leave_it enter", `steer review-17 "leave_it" false`, "done"},
		"interrupt":                 {"S text:now enter", `steer review-17 "now" true`, "done"},
		"steer nothing":             {"s enter", "", ""},
		"steer after all not":       {"s text:q esc", "", ""},
		"steer what has ended":      {"G s", "", "r resumes it"},
		"keys in a message":         {"s text:qacsy? enter", `steer review-17 "qacsy?" false`, "done"},
		"edited":                    {"s text:abc left left backspace text:x home delete end text:d enter", `steer review-17 "bcd" false`, "done"},
		"a word back":               {"s text:one_two space text:three ctrl+w text:x enter", `steer review-17 "one_two x" false`, "done"},
		"resume":                    {"G r text:go enter", `resume bad-1 "go"`, "done"},
		"resume what works":         {"r", "", "s tells it something"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &acted{out: Outcome{Said: "done"}}
			m := made(t, a, 120, 40, Options{})
			for _, key := range strings.Fields(c.keys) {
				if text, ok := strings.CutPrefix(key, "text:"); ok {
					typed(m, text)
					continue
				}
				pressed(m, key)
			}
			if got := strings.Join(a.calls, "\n"); got != c.calls {
				t.Errorf("calls %q, want %q", got, c.calls)
			}
			if screen := bare(m); !strings.Contains(screen, c.said) {
				t.Errorf("the screen does not say %q:\n%s", c.said, screen)
			}
		})
	}
}

func TestQuit(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]bool{"q": true, "ctrl+c": true, "s ctrl+c": true, "s q": false, "/ q": false, "c q": false, "? q": false} {
		m := made(t, &acted{}, 80, 24, Options{})
		if got := pressed(m, strings.Fields(keys)...); got != want {
			t.Errorf("%s: quits %v", keys, got)
		}
	}
	m := made(t, &acted{}, 80, 24, Options{})
	if _, cmd := m.Update(keyMsg("ctrl+z")); cmd == nil {
		t.Error("Ctrl-Z does nothing")
	} else if _, ok := cmd().(tea.SuspendMsg); !ok {
		t.Error("Ctrl-Z does not suspend")
	}
}

// The cursor stays on its thread when others come and go, and goes on with the next one
// when its own is gone; an action goes to the thread that it was begun for.
func TestCursor(t *testing.T) {
	t.Parallel()
	a := &acted{out: Outcome{Said: "done"}}
	m := made(t, a, 80, 24, Options{})
	if m.chosen != (choice{"review-17", true}) {
		t.Fatalf("at first %+v", m.chosen)
	}
	pressed(m, "s")
	typed(m, "hello")
	answered := *scene().Rows[1]
	answered.Question, answered.Asks = nil, false
	feed(m, BoardMsg{At: noon(), Rows: []*board.Row{&answered, {Key: "new", ThreadID: "new", CreatedAt: noon(), Status: thread.Running}}})
	if m.chosen != (choice{"review-17", false}) {
		t.Errorf("it asks no more: %+v", m.chosen)
	}
	feed(m, BoardMsg{At: noon(), Gone: []thread.ID{"review-17"}})
	if m.chosen.key == "review-17" || m.row() == nil {
		t.Errorf("it is gone: %+v", m.chosen)
	}
	if pressed(m, "enter"); len(a.calls) > 0 || !strings.Contains(bare(m), "not on the board any more") {
		t.Errorf("a message for a thread that is gone: %v\n%s", a.calls, bare(m))
	}
}

// TestAttackAnswerSlides: a thread asks something else in the moment in which its first question is answered. The answer is given to the question that was shown, or to none.
func TestAttackAnswerSlides(t *testing.T) {
	t.Parallel()
	for _, keys := range [][2]string{{"a", "s"}, {"a r", "enter"}} {
		a := &acted{out: Outcome{Said: "done"}}
		m := made(t, a, 80, 24, Options{})
		pressed(m, strings.Fields(keys[0])...)
		other := *scene().Rows[1]
		question := *other.Question
		question.ID, other.Question = "q9", &question
		feed(m, BoardMsg{At: noon(), Rows: []*board.Row{&other}})
		pressed(m, keys[1])
		if len(a.calls) > 0 || !strings.Contains(bare(m), "does not ask that any more") {
			t.Errorf("%v: %v\n%s", keys, a.calls, bare(m))
		}
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	listed := func(m *Model) string {
		var keys []string
		for _, e := range m.list {
			key := string(e.row.Key)
			if e.ask {
				key = "?" + key
			}
			if e.hidden > 0 {
				key += fmt.Sprintf("+%d", e.hidden)
			}
			keys = append(keys, key)
		}
		return strings.Join(keys, " ")
	}
	const all = "?review-17 ?deploy-3 batch-1 lead-1 review-17 deploy-3 evil-1 wide-日本語 old-1 bad-1"
	for keys, want := range map[string]string{
		"":                     all,
		"f":                    strings.TrimSuffix(all, " old-1 bad-1"),
		"f f":                  "?review-17 ?deploy-3 lead-1 review-17 deploy-3",
		"f f f":                "bad-1",
		"f f f f":              all,
		"f f f esc":            all,
		"/ d e p l enter":      "?deploy-3 lead-1 review-17 deploy-3", // with what is above it
		"/ d e p l esc":        all,
		"/ x x backspace x":    "",
		"down down down left":  "?review-17 ?deploy-3 batch-1 lead-1+4 old-1 bad-1",
		"n n left":             "?review-17 ?deploy-3 batch-1 lead-1 review-17+1 evil-1 wide-日本語 old-1 bad-1",
		"n n left left left":   "?review-17 ?deploy-3 batch-1 lead-1+4 old-1 bad-1",
		"down down down space": "?review-17 ?deploy-3 batch-1 lead-1+4 old-1 bad-1",
		"n n left right":       all,
	} {
		m := made(t, &acted{}, 80, 24, Options{})
		pressed(m, strings.Fields(keys)...)
		if got := listed(m); got != want {
			t.Errorf("%q: %s\nwant %s", keys, got, want)
		}
	}
	m := made(t, &acted{}, 80, 24, Options{})
	pressed(m, "/", "d", "e", "p", "enter", "esc")
	if got := listed(m); got != all || m.threads.filter != "" {
		t.Errorf("after esc: %s", got)
	}
}

// The page is read of the thread that the cursor stands still on, goes on with the thread
// that continues it, and what is read stays in its place.
func TestPage(t *testing.T) {
	t.Parallel()
	a := &acted{}
	m := made(t, a, 80, 24, Options{})
	for range 3 {
		m.Update(keyMsg("down"))
	}
	settled(m)
	if want := []thread.ID{"review-17", "lead-1-2"}; !slices.Equal(a.looks, want) {
		t.Errorf("looked at %v, want %v", a.looks, want)
	}
	feed(m, TailMsg{ID: "review-17", Pieces: []tail.Piece{{Kind: tail.Words, Text: "of another\n"}}}, TailMsg{ID: "lead-1-2", Pieces: []tail.Piece{{Kind: tail.Words, Text: "of this\n"}}})
	if screen := bare(m); strings.Contains(screen, "of another") || !strings.Contains(screen, "of this") {
		t.Errorf("the page is\n%s", screen)
	}
	next := *scene().Rows[0]
	next.ThreadID = "lead-1-3"
	feed(m, BoardMsg{At: noon(), Rows: []*board.Row{&next}}, TailMsg{ID: "lead-1-3", Pieces: []tail.Piece{{Kind: tail.Words, Text: "and on\n"}}})
	if screen := bare(m); !strings.Contains(screen, "of this") || !strings.Contains(screen, "and on") {
		t.Errorf("the page of the chain is\n%s", screen)
	}
	var many []tail.Piece
	for i := range 3 * maxLines {
		many = append(many, tail.Piece{Kind: tail.Words, Text: fmt.Sprintf("line %d\n", i)})
	}
	feed(m, TailMsg{ID: "lead-1-3", Pieces: many})
	pressed(m, "tab", "pgup")
	before := bare(m)
	feed(m, TailMsg{ID: "lead-1-3", Pieces: []tail.Piece{{Kind: tail.Words, Text: "new\n"}}})
	if after := bare(m); strings.Contains(after, "new") || len(m.page.lines) > maxLines || !strings.Contains(before, "lines below") {
		t.Errorf("%d lines; before\n%s\nafter\n%s", len(m.page.lines), before, after)
	}
	pressed(m, "end")
	if !strings.Contains(bare(m), "new") {
		t.Errorf("at the end\n%s", bare(m))
	}
}

// What was said stays until it is put away, and can be read again; a loss of the board is
// shown until there is one again.
func TestSaid(t *testing.T) {
	t.Parallel()
	m := made(t, &acted{out: Outcome{Error: "it did not work", Try: "something else"}}, 80, 24, Options{})
	pressed(m, "a", "f")
	pressed(m, "down", "down")
	if screen := bare(m); !strings.Contains(screen, "Error: it did not work\n Try:   something else") {
		t.Errorf("the error is gone:\n%s", screen)
	}
	if pressed(m, "esc"); strings.Contains(bare(m), "it did not work") {
		t.Error("it is not put away")
	}
	if pressed(m, "m"); !strings.Contains(bare(m), "it did not work") {
		t.Error("it cannot be read again")
	}
	pressed(m, "esc")
	feed(m, LostMsg{Error: "the database is gone", Try: "rye-mcp doctor"})
	if !strings.Contains(bare(m), "the database is gone") {
		t.Error("nobody is told that nothing new comes")
	}
	feed(m, OutcomeMsg{Said: "cancelled", Lines: []string{"receipt of lead-1"}})
	if screen := bare(m); !strings.Contains(screen, "receipt of lead-1") {
		t.Errorf("no receipt:\n%s", screen)
	}
	feed(m, BoardMsg(scene()))
	if pressed(m, "esc"); strings.Contains(bare(m), "the database is gone") {
		t.Error("the loss is told although boards come")
	}
}

func TestMouse(t *testing.T) {
	t.Parallel()
	m := made(t, &acted{}, 80, 24, Options{Mouse: true})
	if m.View().MouseMode != tea.MouseModeCellMotion || made(t, &acted{}, 80, 24, Options{}).View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is not as was asked for")
	}
	for _, c := range []struct {
		y    int
		want choice
	}{{2, choice{"review-17", true}}, {5, choice{"lead-1", false}}, {11, choice{"bad-1", false}}} {
		if feed(m, tea.MouseClickMsg{X: 4, Y: c.y, Button: tea.MouseLeft}); m.chosen != c.want {
			t.Errorf("line %d chose %+v, want %+v", c.y, m.chosen, c.want)
		}
	}
	feed(m, tea.MouseWheelMsg{X: 4, Y: 4, Button: tea.MouseWheelUp})
	if want := (choice{"evil-1", false}); m.chosen != want {
		t.Errorf("the wheel chose %+v", m.chosen)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	m := made(t, &acted{}, 80, 24, Options{})
	for later, want := range map[time.Duration]string{0: "4:32 left", 272 * time.Second: "time is up", time.Hour: "30:00 left"} {
		feed(m, tickMsg(noon().Add(later)))
		if screen := bare(m); !strings.Contains(screen, want) {
			t.Errorf("after %s nothing says %q:\n%s", later, want, screen)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := strings.Join(Lines(scene(), noon()), "\n") + "\n"
	compare(t, "lines", got)
	if strings.ContainsAny(got, "\x1b\a\r\u202e") {
		t.Errorf("it has what a terminal obeys: %q", got)
	}
}

// crowd is a board of so many threads, in trees of ten.
func crowd(n int) board.Board {
	b := board.Board{Whole: true, At: noon(), Totals: board.Totals{Working: n}}
	for i := range n {
		row := &board.Row{
			Key: thread.ID(fmt.Sprintf("thread-%d", i)), ThreadID: thread.ID(fmt.Sprintf("thread-%d", i)), Status: thread.Running, CreatedAt: noon().Add(-time.Duration(i) * time.Second),
			Name: "Review the parser", Directive: "review", Limits: &thread.Limits{Turns: 12}, Budget: &board.Budget{Limit: 500_000, Spent: 100_000, Left: 400_000}, LastWords: strings.Repeat("words ", 30),
		}
		if i%10 > 0 {
			row.Parent = thread.ID(fmt.Sprintf("thread-%d", i-i%10))
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// BenchmarkRatioTop is how long a changed thread among a thousand, and a key, take until the
// screen is drawn.
func BenchmarkRatioTop(b *testing.B) {
	m := New(&acted{}, Options{Colors: true, Now: noon()})
	all := crowd(1000)
	feed(m, tea.WindowSizeMsg{Width: 120, Height: 40}, BoardMsg(all))
	row := *all.Rows[500]
	for name, msg := range map[string]tea.Msg{"change": BoardMsg{At: noon(), Rows: []*board.Row{&row}}, "key": keyMsg("down")} {
		b.Run(fmt.Sprintf("terminal view, 1000 threads, one %s/until it is drawn/memory", name), func(b *testing.B) {
			const rounds = 50
			for range b.N {
				began := time.Now()
				for range rounds {
					feed(m, msg)
					_ = m.View()
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/1000/rounds, "ms")
			}
			b.ReportMetric(16, "ms-goal") // a picture of a terminal that draws 60 a second
			b.ReportMetric(0, "ns/op")
		})
	}
}
