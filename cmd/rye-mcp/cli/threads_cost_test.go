package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plot"
	"github.com/rye-mcp/rye-mcp/orchestrator/costs"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// costsOfADay are of a review that failed once, and of what a model has named.
func costsOfADay() costJSON {
	hour := time.Date(2026, 3, 4, 9, 0, 0, 0, time.UTC)
	use := func(threads, errors int, spend thread.Micros) costs.Use {
		return costs.Use{Threads: threads, Errors: errors, Cost: thread.Cost{Turns: 3 * threads, InputTokens: 1000, Spend: spend}}
	}
	hostile := "evil\x1b[31m\u202e"
	review := costs.Line{Key: "review", Spend: []thread.Micros{0, 2_000_000, 500_000}, Errors: []int{0, 0, 1}}
	return costJSON{
		Table: costs.Table{
			Range: costs.Range{By: costs.Directive, Covers: "what 5 threads used themselves"},
			Rows:  []costs.Row{{Key: "review", Use: use(4, 1, 2_500_000)}, {Key: hostile, Use: use(1, 0, 90)}}, Total: use(5, 1, 2_500_090),
		},
		OverTime: &costs.Series{
			Bucket: costs.Hours, At: []time.Time{hour, hour.Add(time.Hour), hour.Add(2 * time.Hour)}, Lines: []costs.Line{review},
			Total: costs.Line{Spend: []thread.Micros{90, 2_000_000, 500_000}, Errors: []int{0, 0, 1}},
		},
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width int
		style plot.Style
		want  string
	}{
		"60 columns": {60, plot.Style{}, `
DIRECTIVE   THREADS  TURNS  ERRORS  TOKENS      SPEND
review            4     12       1    1000    $2.5000
evil␛[31m�        1      3       0    1000  $0.000090
total             5     15       1    1000    $2.5001

Spend by directive:
review        $2.5000  █████████████████████████████████████
evil␛[31m�  $0.000090  ▏

Spend by hour, 2026-03-04 09:00 to 2026-03-04 11:00; the
most was $2.0000 (2026-03-04 10:00):
$2.0000 ┤    ████
        ┤    ████
        ┤    ████
        ┤    ████
        ┤    ████▄▄▄▄
        ┤▁▁▁▁████████
     $0 └────────────
         2026-03-04 09:00

Threads that ended in error: 1; the most were 1 (2026-03-04
11:00):
                 ████
`},
		"100 columns in ASCII": {100, plot.Style{ASCII: true}, `
Spend by directive:
review        $2.5000  ##################################################   @.
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			d := costDisplay{display: display{out: &b, width: c.width}, style: c.style, zone: time.UTC}
			if err := d.write(costsOfADay()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), strings.TrimPrefix(c.want, "\n")) {
				t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
			}
			for line := range strings.Lines(b.String()) {
				if plain.Columns(strings.TrimSuffix(line, "\n")) > c.width {
					t.Errorf("a line is wider than %d: %q", c.width, line)
				}
			}
		})
	}
}
