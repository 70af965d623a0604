package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

// cell is one field of a table.
type cell struct {
	text  string
	color color
}

// table is rows of cells under aligned columns. Where it is wider than the
// terminal its widest columns are shortened; elsewhere everything is written.
type table struct {
	header []string // may be empty
	rows   [][]cell
}

const columnGap = 2

// minColumn is what a column is never shortened below.
const minColumn = 8

func (t *table) add(cells ...cell) {
	for i := range cells {
		cells[i].text = plain.Line(cells[i].text)
	}
	t.rows = append(t.rows, cells)
}

// shortenTo shortens the cells of a column so that the table fits, where that leaves
// something to read.
func (t *table) shortenTo(name string, most int) {
	const readable = 12
	at := slices.Index(t.header, name)
	if at < 0 || most <= 0 {
		return
	}
	room := t.widths()[at] - (t.width() - most)
	if room < readable {
		return
	}
	for _, row := range t.rows {
		row[at].text = plain.Shorten(row[at].text, room)
	}
}

// drop takes a column away.
func (t *table) drop(name string) {
	at := slices.Index(t.header, name)
	if at < 0 {
		return
	}
	t.header = slices.Delete(t.header, at, at+1)
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(row, at, at+1)
	}
}

// dropEmpty takes those columns away that say nothing.
func (t *table) dropEmpty(names ...string) {
	for _, name := range names {
		at := slices.Index(t.header, name)
		if at >= 0 && !slices.ContainsFunc(t.rows, func(row []cell) bool { return row[at].text != "" }) {
			t.drop(name)
		}
	}
}

// text is a cell without a colour.
func text(s string) cell { return cell{text: s} }

func (t *table) write(d display) error {
	widths := fit(t.widths(), d.width)
	var b strings.Builder
	if len(t.header) > 0 {
		head := make([]cell, len(t.header))
		for i, name := range t.header {
			head[i] = cell{text: name, color: dim}
		}
		writeRow(&b, d, head, widths)
	}
	for _, row := range t.rows {
		writeRow(&b, d, row, widths)
	}
	_, err := io.WriteString(d.out, b.String())
	return err
}

func (t *table) widths() []int {
	widths := make([]int, len(t.header))
	for i, name := range t.header {
		widths[i] = plain.Columns(name)
	}
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], plain.Columns(c.text))
		}
	}
	return widths
}

// width is how many columns the table takes where nothing is shortened.
func (t *table) width() int {
	widths := t.widths()
	total := columnGap * max(len(widths)-1, 0)
	for _, w := range widths {
		total += w
	}
	return total
}

// fit takes from the widest column, the last of several, until the row fits.
func fit(widths []int, most int) []int {
	if most <= 0 || len(widths) == 0 {
		return widths
	}
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > most; total-- {
		widest := 0
		for i, w := range widths {
			if w >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

func writeRow(b *strings.Builder, d display, row []cell, widths []int) {
	for i, c := range row {
		shown := plain.Shorten(c.text, widths[i])
		b.WriteString(d.paint(c.color, shown))
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", widths[i]-plain.Columns(shown)+columnGap))
		}
	}
	b.WriteByte('\n')
}
