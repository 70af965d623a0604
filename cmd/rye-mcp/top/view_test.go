//nolint:dupword // keys are pressed several times
package top

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// bare is a screen without its styles. Line ends are marked, so that blanks are seen.
func bare(m *Model) string {
	var b strings.Builder
	for line := range strings.SplitSeq(m.View().Content, "\n") {
		b.WriteString(strings.TrimRight(ansi.Strip(line), " ") + "\n")
	}
	return b.String()
}

// fits checks that a screen is no larger than the terminal and holds nothing that acts.
func fits(t interface {
	Helper()
	Fatalf(string, ...any)
}, m *Model) {
	t.Helper()
	content := m.View().Content
	lines := strings.Split(content, "\n")
	if content != "" && len(lines) > m.height {
		t.Fatalf("%d lines on a terminal of %d", len(lines), m.height)
	}
	for _, line := range lines {
		text := ansi.Strip(line)
		if wide := max(ansi.StringWidth(line), plain.Columns(text)); wide > m.width {
			t.Fatalf("%d columns on a terminal of %d: %q", wide, m.width, line)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%q has %U", text, []rune(text[i:])[0])
		}
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{60, 15}, {80, 24}, {120, 40}} {
		for name, keys := range map[string]string{
			"": "", "handoff": "n a", "answering": "a", "set": "n down", "evil": "G up up up", "failed": "G", "help": "?", "cancelling": "down down down c", "raising": "a r", "zoomed": "enter",
		} {
			m := made(t, &acted{}, size[0], size[1], Options{})
			pressed(m, strings.Fields(keys)...)
			fits(t, m)
			if name != "" && name != "handoff" && size[0] == 120 {
				continue // the largest says no more of these
			}
			compare(t, strings.TrimSuffix(fmt.Sprintf("%dx%d-%s", size[0], size[1], name), "-"), bare(m))
		}
	}
}

// Without colours there is none, and what they say is said by words and signs; a dark and
// a light terminal have theirs.
func TestColors(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{"dark": {Colors: true}, "light": {Colors: true, Light: true}, "none": {}} {
		m := made(t, &acted{}, 80, 24, opts)
		got := m.View().Content
		if colored := strings.Contains(got, "38;5;"); colored != opts.Colors {
			t.Errorf("%s: colours %v", name, colored)
		}
		compare(t, "colors-"+name, strings.ReplaceAll(got, "\x1b", "␛")+"\n")
	}
	m := made(t, &acted{}, 80, 24, Options{Colors: true})
	dark := m.View().Content
	feed(m, tea.BackgroundColorMsg{Color: ansi.HexColor("#ffffff")})
	if light := m.View().Content; light == dark || ansi.Strip(light) != ansi.Strip(dark) {
		t.Error("a light terminal has the colours of a dark one, or another text")
	}
}

// TestAttackNamesInTop: a thread has a name, words, an error or a question that moves the cursor, opens a link or turns the direction of text. The terminal view shows signs in their place and stays within its lines.
func TestAttackNamesInTop(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "n", "n a", "n a r", "G", "G up up up", "G up up up enter", "G up up up c", "G up up up s", "m", "/"} {
		m := made(t, &acted{out: Outcome{Said: evil, Lines: []string{evil}, Error: evil, Try: evil}}, 100, 30, Options{Colors: true})
		pressed(m, strings.Fields(keys)...)
		feed(m, OutcomeMsg{Said: evil, Error: evil, Try: evil, Lines: []string{evil}}, LostMsg{Error: evil, Try: evil}, tea.PasteMsg{Content: evil})
		fits(t, m)
		content := m.View().Content
		for _, code := range []string{"\x1b[2J", "\x1b]", "\x07", "\u202e", "\r"} {
			if strings.Contains(content, code) {
				t.Errorf("after %q the screen has %q", keys, code)
			}
		}
	}
}

// For any keys, pastes, clicks and boards, on a terminal of any size, nothing panics, the
// screen fits, and nobody but the person with the right keys acts.
func TestAnyKeys(t *testing.T) {
	t.Parallel()
	names := []string{
		"up", "down", "left", "right", "enter", "esc", "tab", "backspace", "delete", "home", "end", "pgup", "pgdown", "space", "ctrl+u", "ctrl+k", "ctrl+w",
		"a", "b", "c", "f", "g", "G", "h", "j", "k", "l", "m", "n", "r", "s", "S", "y", "z", "/", "?", "1", "=", "日", "é",
	}
	rapid.Check(t, func(rt *rapid.T) {
		a := &acted{out: Outcome{Said: rapid.SampledFrom([]string{"", "done", evil}).Draw(rt, "said"), Error: rapid.SampledFrom([]string{"", evil}).Draw(rt, "error")}}
		m := made(t, a, rapid.IntRange(0, 130).Draw(rt, "width"), rapid.IntRange(0, 45).Draw(rt, "height"), Options{Colors: rapid.Bool().Draw(rt, "colors")})
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				feed(m, tea.WindowSizeMsg{Width: rapid.IntRange(0, 130).Draw(rt, "width"), Height: rapid.IntRange(0, 45).Draw(rt, "height")})
			case 1:
				feed(m, tea.PasteMsg{Content: rapid.String().Draw(rt, "pasted")})
			case 2:
				b := scene()
				b.Whole = rapid.Bool().Draw(rt, "whole")
				b.Rows = b.Rows[rapid.IntRange(0, len(b.Rows)).Draw(rt, "from"):]
				for _, row := range b.Rows {
					row.Name, row.LastWords = rapid.String().Draw(rt, "name"), rapid.String().Draw(rt, "words")
				}
				b.Gone = []thread.ID{rapid.SampledFrom([]thread.ID{"lead-1", "review-17", "old-1"}).Draw(rt, "gone")}
				feed(m, BoardMsg(b))
				settled(m)
			case 3:
				text := plain.Lines(rapid.String().Draw(rt, "tail"))
				feed(m, TailMsg{ID: m.page.id, Pieces: []tail.Piece{{Kind: tail.Words, Text: text, Open: true}}})
			case 4:
				at := tea.Mouse{X: rapid.IntRange(0, 130).Draw(rt, "x"), Y: rapid.IntRange(0, 45).Draw(rt, "y"), Button: tea.MouseLeft}
				feed(m, tea.MouseClickMsg(at))
				at.Button = tea.MouseWheelUp
				feed(m, tea.MouseWheelMsg(at))
			default:
				pressed(m, rapid.SampledFrom(names).Draw(rt, "key"))
			}
			if m.width > 0 && m.height > 0 {
				fits(rt, m)
			}
		}
	})
}
