package cli

import (
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

// piece is a part of a word that looks one way.
type piece struct {
	text string
	look color
}

// word is a piece of text, or several that no space divides; it stays on one line.
type word []piece

// inlinePattern finds what stands out in a text: code between one or two backquotes, bold,
// a link, italic, and a character that is meant as itself.
var inlinePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("``(.+?)``|`([^`]+)`" + `|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)|\*([^\s*](?:[^*]*[^\s*])?)\*|\\([\\*_` + "`" + `|\[\]])`)
})

// words are the words of a text, each with its look; base is that of what does not stand
// out. Without colours code keeps its backquotes.
func (m markdown) words(text string, base color) []word {
	var b wordBuilder
	at := 0
	for _, found := range inlinePattern().FindAllStringSubmatchIndex(text, -1) {
		b.add(text[at:found[0]], base)
		at = found[1]
		group := func(i int) string {
			if found[2*i] < 0 {
				return ""
			}
			return text[found[2*i]:found[2*i+1]]
		}
		b.add(m.quoted(strings.TrimSpace(group(1))+group(2)), cyan)
		b.add(group(3), bold)
		b.add(group(4), base)
		if address := group(5); strings.Contains(address, "://") && address != group(4) {
			b.add(" ("+address+")", base)
		}
		b.add(group(6), italic)
		b.add(group(7), base)
	}
	b.add(text[at:], base)
	return b.words
}

// quoted marks code where its colour does not.
func (m markdown) quoted(code string) string {
	if code == "" || m.d.colors {
		return code
	}
	return "`" + code + "`"
}

// wordBuilder divides pieces into words, which go on from one piece to the next where
// no space is between them.
type wordBuilder struct {
	words []word
	open  bool // the last word goes on
}

func (b *wordBuilder) add(text string, look color) {
	for i, part := range strings.Split(text, " ") {
		if i > 0 {
			b.open = false
		}
		if part == "" {
			continue
		}
		if !b.open {
			b.words, b.open = append(b.words, nil), true
		}
		last := &b.words[len(b.words)-1]
		*last = append(*last, piece{part, look})
	}
}

func (w word) columns() (n int) {
	for _, p := range w {
		n += plain.Columns(p.text)
	}
	return n
}

// columnsOf is how wide a terminal shows words on one line.
func columnsOf(words []word) int {
	n := max(len(words)-1, 0)
	for _, w := range words {
		n += w.columns()
	}
	return n
}

// broken puts words into lines of at most so many columns, at least one.
func broken(words []word, width int) [][]word {
	var (
		lines      [][]word
		from, used int
	)
	for i, w := range words {
		n := w.columns()
		if i > from && used+1+n > width {
			lines, from, used = append(lines, words[from:i]), i, 0
		}
		if i > from {
			used++
		}
		used += n
	}
	return append(lines, words[from:])
}

func (m markdown) line(words []word) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, p := range w {
			b.WriteString(m.d.paint(p.look, p.text))
		}
	}
	return b.String()
}

// wrap shows a text on lines of at most so many columns.
func (m markdown) wrap(text string, width int, base color) (lines []string) {
	for _, words := range broken(m.words(text, base), width) {
		lines = append(lines, m.line(words))
	}
	return lines
}
