// Package plot draws numbers with characters: bars, lines of one character a number, and
// columns. Where a terminal cannot show block characters it draws with ASCII. A
// drawing only helps the eye: the callers write the numbers beside it.
package plot

import (
	"math"
	"strings"
)

// Style is what can be drawn with.
type Style struct {
	ASCII bool // no block characters
}

var (
	// eighths of a cell, from the left and from below.
	lying    = []rune(" ▏▎▍▌▋▊▉█")
	standing = []rune(" ▁▂▃▄▅▆▇█")
	// The nearest in ASCII.
	asciiStanding = []rune(" _.-=+*#@")
)

// Bar is as long, of at most width columns, as a value is large against the most.
// A value above 0 can be seen.
func Bar(value, most float64, width int, s Style) string {
	part := share(value, most)
	if part <= 0 || width <= 0 {
		return ""
	}
	if s.ASCII {
		return strings.Repeat("#", max(1, int(math.Round(part*float64(width)))))
	}
	n := max(1, int(math.Round(part*float64(width)*8)))
	bar := strings.Repeat("█", n/8)
	if rest := n % 8; rest > 0 {
		bar += string(lying[rest])
	}
	return bar
}

// share is a value against the most, between 0 and 1.
func share(value, most float64) float64 {
	if !(value > 0) || !(most > 0) { // NaN is neither
		return 0
	}
	if math.IsInf(most, 1) {
		most = math.MaxFloat64
	}
	return min(1, min(value, math.MaxFloat64)/most)
}

// Spark is a line with one character a value, as high as that is large against the most.
func Spark(values []float64, most float64, s Style) string {
	signs := standing
	if s.ASCII {
		signs = asciiStanding
	}
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(signs[level(share(v, most), len(signs)-1)])
	}
	return b.String()
}

// level is how many of so many steps a share fills; more than nothing is at least one.
func level(part float64, steps int) int {
	if part <= 0 {
		return 0
	}
	return min(steps, max(1, int(math.Round(part*float64(steps)))))
}

// Columns are lines, the upper first, in which each value is a column of some characters'
// width and at most height lines.
func Columns(values []float64, most float64, width, height int, s Style) []string {
	signs := standing
	if s.ASCII {
		signs = []rune(" #")
	}
	steps := len(signs) - 1
	lines := make([]string, max(0, height))
	for row := range lines {
		var b strings.Builder
		below := (len(lines) - 1 - row) * steps // of the column, under this line
		for _, v := range values {
			filled := level(share(v, most), steps*len(lines)) - below
			b.WriteString(strings.Repeat(string(signs[min(steps, max(0, filled))]), max(1, width)))
		}
		lines[row] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// Fit adds up neighbours until there are no more than most values, and says how many
// each of them is made of. The last may be made of fewer.
func Fit(values []float64, most int) (fitted []float64, each int) {
	each = 1
	if most > 0 && len(values) > most {
		each = (len(values) + most - 1) / most
	}
	for i := 0; i < len(values); i += each {
		sum := 0.0
		for _, v := range values[i:min(i+each, len(values))] {
			sum += v
		}
		fitted = append(fitted, sum)
	}
	return fitted, each
}

// Most is the largest of some values, and its place; 0 of none.
func Most(values []float64) (most float64, at int) {
	for i, v := range values {
		if v > most {
			most, at = v, i
		}
	}
	return most, at
}
