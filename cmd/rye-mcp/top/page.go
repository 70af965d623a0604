package top

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/tail"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	// maxLines is how much of what a thread did is kept; half of it goes at once.
	maxLines = 4000
	// maxLine is how many bytes one line is; a longer one goes on in the next.
	maxLine = 4 << 10
	tabStop = "    "
)

// page is what the chosen thread did last.
type page struct {
	id    thread.ID // the newest of the chain
	key   thread.ID // of its row
	lines []said
	open  bool // the last line goes on
}

// said is one line of a page, which is wrapped where it is shown.
type said struct {
	kind tail.Kind
	text string
}

func (p *page) add(pieces []tail.Piece) {
	for _, piece := range pieces {
		if piece.Kind != tail.Words {
			p.open = false
			p.put(piece.Kind, piece.Text)
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(piece.Text, "\t", tabStop)) {
			text := strings.TrimSuffix(line, "\n")
			p.put(tail.Words, text)
			p.open = text == line // no line end
		}
	}
	if len(p.lines) > maxLines {
		p.lines = append([]said(nil), p.lines[len(p.lines)-maxLines/2:]...)
	}
}

// put adds a text to the line that is open, or as lines of its own.
func (p *page) put(kind tail.Kind, text string) {
	if p.open && len(p.lines) > 0 && p.lines[len(p.lines)-1].kind == kind {
		last := &p.lines[len(p.lines)-1]
		text = last.text + text
		p.lines = p.lines[:len(p.lines)-1]
	}
	for len(text) > maxLine {
		cut := maxLine
		for cut > 0 && text[cut]&0xc0 == 0x80 { // within a character
			cut--
		}
		p.lines = append(p.lines, said{kind, text[:cut]})
		text = text[cut:]
	}
	p.lines = append(p.lines, said{kind, text})
}

// last are the lines at the end of the page, as wide as is told: so many, above as many
// that are scrolled past. It returns how far can be scrolled at most, as far as is known.
func (p *page) last(width, height, scroll int) (shown []said, most int) {
	need := height + scroll
	var back []said // newest first
	for i := len(p.lines) - 1; i >= 0 && len(back) < need; i-- {
		wrapped := wrapHard(p.lines[i].text, width)
		for j := len(wrapped) - 1; j >= 0; j-- {
			back = append(back, said{p.lines[i].kind, wrapped[j]})
		}
	}
	scroll = min(scroll, max(0, len(back)-height))
	for i := min(len(back), height+scroll) - 1; i >= scroll; i-- {
		shown = append(shown, back[i])
	}
	return shown, scroll
}

// wrapHard breaks a text into lines that are no wider: between words, else anywhere.
func wrapHard(text string, width int) (lines []string) {
	width = max(1, width)
	for columns(text) > width {
		end, space := breakAt(text, width)
		lines = append(lines, strings.TrimRight(text[:end], " "))
		text = text[end+space:]
	}
	return append(lines, text)
}

// breakAt is where a text that is too wide is broken, and how many bytes of white space go
// with that.
func breakAt(text string, width int) (end, space int) {
	fits := len(cut(text, width))
	if fits == 0 { // not even one character
		for i := range text {
			if i > 0 {
				return i, 0
			}
		}
		return len(text), 0
	}
	if text[fits:] != "" && text[fits] == ' ' {
		return fits, 1
	}
	if at := strings.LastIndexByte(text[:fits], ' '); at > fits/2 {
		return at, 1
	}
	return fits, 0
}
