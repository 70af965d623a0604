package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

// maxInput bounds what can be typed or pasted into a line, in characters.
const maxInput = 16 << 10

// input is a line that a person types.
type input struct {
	text []rune
	at   int // characters before the cursor
}

func newInput(text string) input { return input{text: []rune(text), at: len([]rune(text))} }

func (in *input) String() string { return string(in.text) }

// insert types a text; line ends become spaces, as it is one line.
func (in *input) insert(text string) {
	typed := []rune(plain.Lines(strings.ToValidUTF8(text, "")))
	for i, r := range typed {
		if r == '\n' || r == '\t' {
			typed[i] = ' '
		}
	}
	typed = typed[:min(len(typed), max(0, maxInput-len(in.text)))]
	rest := append([]rune(nil), in.text[in.at:]...)
	in.text = append(append(in.text[:in.at], typed...), rest...)
	in.at += len(typed)
}

// press takes a key that edits the line, and reports whether it is one.
func (in *input) press(msg tea.KeyPressMsg) bool {
	switch msg.String() {
	case "left", "ctrl+b":
		in.at = max(0, in.at-1)
	case "right", "ctrl+f":
		in.at = min(len(in.text), in.at+1)
	case "home", "ctrl+a":
		in.at = 0
	case "end", "ctrl+e":
		in.at = len(in.text)
	case "backspace", "ctrl+h":
		in.remove(in.at-1, in.at)
	case "delete", "ctrl+d":
		in.remove(in.at, in.at+1)
	case "ctrl+u":
		in.remove(0, in.at)
	case "ctrl+k":
		in.remove(in.at, len(in.text))
	case "ctrl+w", "alt+backspace":
		in.remove(in.wordBefore(), in.at)
	default:
		if msg.Text == "" {
			return false
		}
		in.insert(msg.Text)
	}
	return true
}

func (in *input) remove(from, to int) {
	from, to = max(0, from), min(len(in.text), to)
	if from >= to {
		return
	}
	in.text = append(in.text[:from], in.text[to:]...)
	in.at = from
}

func (in *input) wordBefore() int {
	at := in.at
	for at > 0 && in.text[at-1] == ' ' {
		at--
	}
	for at > 0 && in.text[at-1] != ' ' {
		at--
	}
	return at
}

// shown is what of the line fits into so many columns, the cursor in it, and where that
// is.
func (in *input) shown(width int) (text string, cursor int) {
	if width <= 1 {
		return "", 0
	}
	from := 0
	for columns(string(in.text[from:in.at])) > width-1 {
		from++
	}
	return cut(string(in.text[from:]), width-1), columns(string(in.text[from:in.at]))
}
