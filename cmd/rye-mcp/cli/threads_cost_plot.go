package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plot"
	"github.com/rye-mcp/rye-mcp/orchestrator/costs"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	unboundColumns = 80 // where the width is not known
	sparkColumns   = 80 // from which on each bar has its time beside it
	maxBars        = 20
	plotLines      = 6
	maxPerColumn   = 4
)

// columns is how wide a drawing may be.
func (d costDisplay) columns() int {
	if d.width > 0 {
		return d.width
	}
	return unboundColumns
}

// lines writes lines, broken at the width.
func (d costDisplay) lines(texts ...string) error {
	var b strings.Builder
	for _, text := range texts {
		for _, line := range plain.Wrap(text, d.width) {
			b.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(d.out, b.String())
	return err
}

// drawRows draws a bar for each of the dearest directives or models, and behind it how
// that spend came about over time.
func (d costDisplay) drawRows(answer costJSON) {
	if answer.By == costs.Day {
		return
	}
	rows := answer.Rows[:min(len(answer.Rows), maxBars)]
	names, figures, most := 0, 0, thread.Micros(0)
	for _, r := range rows {
		names, figures = max(names, plain.Columns(plain.Line(r.Key))), max(figures, len(r.Spend.String()))
		most = max(most, r.Spend)
	}
	wide := d.columns()
	names = min(names, wide/3)
	room, spark := wide-names-figures-4, 0
	if wide >= sparkColumns {
		spark = room / 3
		room -= spark + 2
	}
	_ = d.lines("", fmt.Sprintf("Spend by %s:", answer.By))
	for _, r := range rows {
		name := plain.Shorten(plain.Line(r.Key), names)
		bar := plot.Bar(float64(r.Spend), float64(most), room, d.style)
		line := fmt.Sprintf("%s  %*s  %s", filled(name, names), figures, r.Spend, d.paint(green, bar))
		if spark > 0 {
			line += strings.Repeat(" ", room-plain.Columns(bar)+2) + d.sparkOf(*answer.OverTime, r.Key, spark)
		}
		_, _ = fmt.Fprintln(d.out, strings.TrimRight(line, " "))
	}
}

func filled(text string, to int) string {
	return text + strings.Repeat(" ", max(0, to-plain.Columns(text)))
}

// sparkOf is how the spend of one key came about; empty where it has no line.
func (d costDisplay) sparkOf(s costs.Series, key string, wide int) string {
	for _, l := range s.Lines {
		if l.Key == key {
			values, _ := plot.Fit(amounts(l.Spend), wide)
			most, _ := plot.Most(values)
			return plot.Spark(values, most, d.style)
		}
	}
	return ""
}

func amounts(spend []thread.Micros) []float64 {
	values := make([]float64, len(spend))
	for i, m := range spend {
		values[i] = m.Dollars()
	}
	return values
}

func numbers(counts []int) []float64 {
	values := make([]float64, len(counts))
	for i, n := range counts {
		values[i] = float64(n)
	}
	return values
}

// drawTime draws the spend over time, and the failures where there are any.
func (d costDisplay) drawTime(s costs.Series) {
	if len(s.At) == 0 {
		return
	}
	values := amounts(s.Total.Spend)
	most, at := plot.Most(values)
	top := "$" + fmt.Sprintf("%.4f", most)
	room := d.columns() - len(top) - 3
	fitted, each := plot.Fit(values, room)
	step := string(s.Bucket)
	if each > 1 {
		step = fmt.Sprintf("%d %ss", each, s.Bucket)
	}
	_ = d.lines("", fmt.Sprintf("Spend by %s, %s to %s; the most was %s (%s):",
		step, d.stampOf(s.At[0], s.Bucket), d.stampOf(s.At[len(s.At)-1], s.Bucket), s.Total.Spend[at], d.stampOf(s.At[at], s.Bucket)))
	high, _ := plot.Most(fitted)
	label := fmt.Sprintf("$%.4f", high)
	per := min(maxPerColumn, max(1, room/len(fitted)))
	d.axis(label, plot.Columns(fitted, high, per, plotLines, d.style), per*len(fitted))
	d.dates(len(label), d.stampOf(s.At[0], s.Bucket), d.stampOf(s.At[len(s.At)-1], s.Bucket), per*len(fitted))
	d.drawErrors(s, len(label), per, room)
}

// axis draws columns with what their height means.
func (d costDisplay) axis(label string, lines []string, wide int) {
	side, corner, floor := "┤", "└", "─"
	if d.style.ASCII {
		side, corner, floor = "|", "+", "-"
	}
	for i, line := range lines {
		name := strings.Repeat(" ", len(label))
		if i == 0 {
			name = label
		}
		_, _ = fmt.Fprintln(d.out, strings.TrimRight(fmt.Sprintf("%s %s%s", name, side, d.paint(green, line)), " "))
	}
	_, _ = fmt.Fprintf(d.out, "%*s %s%s\n", len(label), "$0", corner, strings.Repeat(floor, wide))
}

// dates stand below the first and the last column, where there is room for both.
func (d costDisplay) dates(indent int, first, last string, wide int) {
	line := strings.Repeat(" ", indent+2) + first
	if gap := wide - len(first) - len(last); gap > 0 {
		line += strings.Repeat(" ", gap) + last
	}
	_, _ = fmt.Fprintln(d.out, line)
}

// drawErrors draws how many threads failed when.
func (d costDisplay) drawErrors(s costs.Series, indent, per, room int) {
	values := numbers(s.Total.Errors)
	most, at := plot.Most(values)
	if most == 0 {
		return
	}
	all := 0
	for _, n := range s.Total.Errors {
		all += n
	}
	_ = d.lines("", fmt.Sprintf("Threads that ended in error: %d; the most were %d (%s):", all, s.Total.Errors[at], d.stampOf(s.At[at], s.Bucket)))
	fitted, _ := plot.Fit(values, room)
	high, _ := plot.Most(fitted)
	for _, line := range plot.Columns(fitted, high, per, 1, d.style) {
		_, _ = fmt.Fprintf(d.out, "%s%s\n", strings.Repeat(" ", indent+2), d.paint(red, line))
	}
}

// stampOf names a bucket.
func (d costDisplay) stampOf(at time.Time, b costs.Bucket) string {
	at = at.In(d.zone)
	if b == costs.Hours {
		return at.Format("2006-01-02 15:04")
	}
	return at.Format(time.DateOnly)
}
