package cli

import (
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

// markdown shows the Markdown that guides are written in on a terminal: headings,
// paragraphs, lists, quotes, tables, code, bold, italic and links. The parsers there are
// build tables and patterns before main, for up to a millisecond of every thread.
type markdown struct {
	d     display
	depth int // of lists and quotes around the text
}

// Bounds of what is shown as it is meant; the rest is shown as text.
const (
	mostDepth   = 6
	mostColumns = 16 // of a table
)

// Looks of a text, where there are colours.
const (
	bold   color = "\x1b[1m"
	italic color = "\x1b[3m"
)

// codeIndent stands before every line of code.
const codeIndent = "    "

// patterns find where a block begins.
type patterns struct {
	fence, heading, item, rule, quote *regexp.Regexp
}

var blockPatterns = sync.OnceValue(func() patterns {
	return patterns{
		fence:   regexp.MustCompile("^(`{3,})([^`]*)$"),
		heading: regexp.MustCompile(`^(#{1,6}) +(.*)$`),
		item:    regexp.MustCompile(`^([-*]|\d{1,3}\.) +`),
		rule:    regexp.MustCompile(`^\|[ :|-]*-[ :|-]*$`), // below the head of a table
		quote:   regexp.MustCompile(`^> ?`),
	}
})

// render returns the text as lines of at most so many columns. Code is not broken, and
// neither is a word that is longer.
func (m markdown) render(source string, width int) []string {
	return m.blocks(strings.Split(strings.TrimRight(plain.Lines(source), "\n"), "\n"), width)
}

// blocks shows the blocks of a text, apart from each other; a list follows closely where
// the text lets it.
func (m markdown) blocks(lines []string, width int) (shown []string) {
	p, apart := blockPatterns(), false
	for len(lines) > 0 {
		if strings.TrimSpace(lines[0]) == "" {
			lines, apart = lines[1:], true
			continue
		}
		if len(shown) > 0 && (apart || !p.item.MatchString(lines[0])) {
			shown = append(shown, "")
		}
		apart = p.heading.MatchString(lines[0])
		n, block := m.block(p, lines, width)
		shown, lines = append(shown, block...), lines[n:]
	}
	return shown
}

// block shows the block that the lines begin with, and tells how many of them it has.
func (m markdown) block(p patterns, lines []string, width int) (n int, shown []string) {
	switch {
	case p.fence.MatchString(lines[0]):
		return m.code(p, lines)
	case p.heading.MatchString(lines[0]):
		parts := p.heading.FindStringSubmatch(lines[0])
		return 1, m.heading(len(parts[1]), parts[2], width)
	case isTable(p, lines):
		return m.table(lines, width)
	case m.depth < mostDepth && p.item.MatchString(lines[0]):
		return m.inside().item(p, lines, width)
	case m.depth < mostDepth && p.quote.MatchString(lines[0]):
		return m.inside().quote(p, lines, width)
	}
	n = 1
	for n < len(lines) && strings.TrimSpace(lines[n]) != "" && !begins(p, lines[n:]) {
		n++
	}
	return n, m.wrap(strings.Join(lines[:n], " "), width, uncolored)
}

// inside is for what stands in a list or a quote.
func (m markdown) inside() markdown {
	m.depth++
	return m
}

// begins reports whether another block than a paragraph begins here.
func begins(p patterns, lines []string) bool {
	return p.fence.MatchString(lines[0]) || p.heading.MatchString(lines[0]) || p.item.MatchString(lines[0]) ||
		p.quote.MatchString(lines[0]) || isTable(p, lines)
}

// heading underlines headings where they cannot be bold.
func (m markdown) heading(level int, text string, width int) []string {
	shown := m.wrap(text, width, bold)
	if m.d.colors || level > 2 {
		return shown
	}
	under := map[int]string{1: "=", 2: "-"}[level]
	return append(shown, strings.Repeat(under, plain.Columns(shown[len(shown)-1])))
}

// code shows a block of code below the name of its file, if it has one.
func (m markdown) code(p patterns, lines []string) (n int, shown []string) {
	parts := p.fence.FindStringSubmatch(lines[0])
	_, file, _ := strings.Cut(parts[2], " ")
	if file != "" && !strings.HasPrefix(file, "no-run:") {
		shown = append(shown, m.d.paint(dim, file+":"))
	}
	for n = 1; n < len(lines) && lines[n] != parts[1]; n++ {
		shown = append(shown, strings.TrimRight(codeIndent+m.d.paint(cyan, lines[n]), " "))
	}
	return min(n+1, len(lines)), shown
}

// item shows one item of a list with everything that is indented below it.
func (m markdown) item(p patterns, lines []string, width int) (n int, shown []string) {
	mark := p.item.FindString(lines[0])
	inner := []string{lines[0][len(mark):]}
	for n = 1; n < len(lines); n++ {
		line := lines[n]
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch blank := strings.TrimSpace(line) == ""; {
		case blank && n+1 < len(lines) && strings.HasPrefix(lines[n+1], "  "):
			inner = append(inner, "")
		case !blank && (indent >= 2 || !begins(p, lines[n:])):
			inner = append(inner, line[min(indent, len(mark)):])
		default:
			return n, m.below(mark, inner, width)
		}
	}
	return n, m.below(mark, inner, width)
}

// below shows blocks behind a mark, which stands in the first line only.
func (m markdown) below(mark string, inner []string, width int) []string {
	shown := m.blocks(inner, max(width-len(mark), minColumn))
	for i, line := range shown {
		switch {
		case i == 0:
			shown[i] = mark + line
		case line != "":
			shown[i] = strings.Repeat(" ", len(mark)) + line
		}
	}
	return shown
}

func (m markdown) quote(p patterns, lines []string, width int) (n int, shown []string) {
	var inner []string
	for n < len(lines) && p.quote.MatchString(lines[n]) {
		inner = append(inner, lines[n][len(p.quote.FindString(lines[n])):])
		n++
	}
	shown = m.blocks(inner, max(width-2, minColumn))
	for i, line := range shown {
		shown[i] = m.d.paint(dim, "│") + " " + line
	}
	return n, shown
}

// isTable reports whether a table begins here: a row, and the rule below its head.
func isTable(p patterns, lines []string) bool {
	return len(lines) > 1 && strings.HasPrefix(lines[0], "|") && p.rule.MatchString(lines[1]) &&
		strings.Count(lines[0], "|") <= mostColumns+1
}

// table shows a table whose cells are wrapped until it is as narrow as the text.
func (m markdown) table(lines []string, width int) (n int, shown []string) {
	var rows [][]string
	for n < len(lines) && strings.HasPrefix(lines[n], "|") {
		rows = append(rows, tableCells(lines[n]))
		n++
	}
	head, rows := rows[0], rows[2:]
	widths, least := make([]int, len(head)), make([]int, len(head))
	for at, row := range append(rows[:len(rows):len(rows)], head) {
		row = row[:min(len(row), len(head))]
		if at < len(rows) {
			rows[at] = row
		}
		for i, c := range row {
			words := m.words(c, uncolored)
			widths[i] = max(widths[i], columnsOf(words))
			for _, w := range words {
				least[i] = max(least[i], w.columns())
			}
		}
	}
	narrow(widths, least, width)
	if strings.Join(head, "") != "" {
		shown = m.row(head, widths, bold)
	}
	for _, row := range rows {
		shown = append(shown, m.row(row, widths, uncolored)...)
	}
	return n, shown
}

// narrow takes from the widest column of a table that has more than its longest word, until
// the table fits. One that cannot is wider than the text.
func narrow(widths, least []int, most int) {
	for total := columnStart(widths, len(widths)) - columnGap; total > most; total-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// tableCells are the cells of a row; "\|" is a character in one.
func tableCells(line string) (cells []string) {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	var cell strings.Builder
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '|':
			i++
			cell.WriteByte('|')
		case line[i] == '|':
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}

// row shows the cells of a row beside each other, on as many lines as the longest needs.
func (m markdown) row(cells []string, widths []int, look color) (shown []string) {
	wrapped := make([][][]word, len(cells))
	height := 1
	for i, c := range cells {
		wrapped[i] = broken(m.words(c, look), widths[i])
		height = max(height, len(wrapped[i]))
	}
	for at := range height {
		var b strings.Builder
		used := 0
		for i, lines := range wrapped {
			if at >= len(lines) || len(lines[at]) == 0 {
				continue
			}
			gap := columnStart(widths, i) - used
			b.WriteString(strings.Repeat(" ", gap) + m.line(lines[at]))
			used += gap + columnsOf(lines[at])
		}
		shown = append(shown, b.String())
	}
	return shown
}

// columnStart is where a column of a table begins.
func columnStart(widths []int, column int) (start int) {
	for _, w := range widths[:column] {
		start += w + columnGap
	}
	return start
}
