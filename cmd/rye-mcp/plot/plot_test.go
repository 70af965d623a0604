package plot_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plot"
)

func TestDraws(t *testing.T) {
	t.Parallel()
	ascii := plot.Style{ASCII: true}
	for name, c := range map[string]struct{ got, want string }{
		"bar":                 {plot.Bar(5, 10, 10, plot.Style{}), "█████"},
		"bar, in eighths":     {plot.Bar(1, 3, 4, plot.Style{}), "█▍"},
		"bar, little":         {plot.Bar(1, 1e9, 10, plot.Style{}), "▏"},
		"bar, nothing":        {plot.Bar(0, 10, 10, plot.Style{}), ""},
		"bar, of nothing":     {plot.Bar(3, 0, 10, plot.Style{}), ""},
		"bar, too much":       {plot.Bar(30, 10, 3, plot.Style{}), "███"},
		"bar, no number":      {plot.Bar(math.NaN(), 10, 3, plot.Style{}), ""},
		"bar in ASCII":        {plot.Bar(5, 10, 10, ascii), "#####"},
		"bar in ASCII, a bit": {plot.Bar(1, 1000, 10, ascii), "#"},
		"spark":               {plot.Spark([]float64{0, 1, 4, 8, -1}, 8, plot.Style{}), " ▁▄█ "},
		"spark in ASCII":      {plot.Spark([]float64{0, 1, 4, 8}, 8, ascii), " _=@"},
		"columns":             {strings.Join(plot.Columns([]float64{0, 4, 8, 1}, 8, 2, 2, plot.Style{}), "\n"), "    ██\n  ████▂▂"},
		"columns in ASCII":    {strings.Join(plot.Columns([]float64{0, 4, 8, 1}, 8, 1, 2, ascii), "\n"), "  #\n ###"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
	if fitted, each := plot.Fit([]float64{1, 2, 3, 4, 5}, 2); each != 3 || len(fitted) != 2 || fitted[0] != 6 || fitted[1] != 9 {
		t.Errorf("fitted %v, %d each", fitted, each)
	}
}

// TestFits holds that nothing is wider or higher than it may be, and that in ASCII only
// ASCII is drawn.
func TestFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 0, 40).Draw(t, "values")
		most := rapid.Float64().Draw(t, "most")
		width, height := rapid.IntRange(0, 30).Draw(t, "width"), rapid.IntRange(0, 9).Draw(t, "height")
		s := plot.Style{ASCII: rapid.Bool().Draw(t, "ascii")}
		lines := plot.Columns(values, most, width, height, s)
		fitted, _ := plot.Fit(values, width)
		if len(lines) != height || width > 0 && len(fitted) > width {
			t.Fatalf("%d lines, %d fitted", len(lines), len(fitted))
		}
		lines = append(lines, plot.Spark(values, most, s))
		for _, v := range values {
			if bar := plot.Bar(v, most, width, s); utf8.RuneCountInString(bar) > width {
				t.Fatalf("a bar of %d in %d: %q", utf8.RuneCountInString(bar), width, bar)
			}
			lines = append(lines, plot.Bar(v, most, width, s))
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > max(1, width)*max(1, len(values)) || s.ASCII && len(line) != utf8.RuneCountInString(line) {
				t.Fatalf("%q", line)
			}
		}
	})
}
