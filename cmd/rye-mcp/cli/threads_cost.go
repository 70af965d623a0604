package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plot"
	"github.com/rye-mcp/rye-mcp/orchestrator/costs"
)

// costFlags say which costs are shown, and how.
type costFlags struct {
	by, since, until string
	exact, plot      bool
	json             bool
	anyTime          bool // nothing was said of it
}

func newThreadsCostCommand(sys System, opts *options) *cobra.Command {
	var flags costFlags
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what threads have cost: by directive, by model or by day",
		Long: `Show what the threads of the project have cost, and how many of them failed: by
directive, by model or by day. Each thread counts with its own cost, on the day and
under the model with which it was started; --exact reads the transcripts and counts
each call of a model when it was made. Threads that were deleted count too.

With --plot bars and the spend over time are drawn below the numbers.`,
		Example: `  rye-mcp threads cost --plot
  rye-mcp threads cost --by model --since 7d
  rye-mcp threads cost --by day --since 2026-03-01 --exact --json`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(costKinds(), flags.by) {
				return &usageError{message: fmt.Sprintf("--by %q is not known", flags.by), try: "--by " + strings.Join(costKinds(), ", or ")}
			}
			flags.anyTime = flags.since == "" && flags.until == ""
			return showCost(cmd.Context(), sys, *opts, flags)
		}),
	}
	cmd.Flags().StringVar(&flags.by, "by", string(costs.Directive), "what costs are told apart by: "+strings.Join(costKinds(), ", "))
	cmd.Flags().StringVar(&flags.since, "since", "", "from so long ago (12h, 30d), a day (2026-03-01), or all (default 30d)")
	cmd.Flags().StringVar(&flags.until, "until", "", "until so long ago, or a day, which is left out (default now)")
	cmd.Flags().BoolVar(&flags.exact, "exact", false, "count each call of a model when it was made and with the model that was asked")
	cmd.Flags().BoolVar(&flags.plot, "plot", false, "draw bars and the spend over time")
	jsonFlag(cmd, &flags.json)
	completeFlag(cmd, "by", costKinds)
	return cmd
}

func costKinds() []string {
	return []string{string(costs.Directive), string(costs.Model), string(costs.Day)}
}

// costJSON is what threads cost writes with --json.
type costJSON struct {
	costs.Table
	OverTime *costs.Series `json:"over_time,omitempty"` // with --plot
}

func showCost(ctx context.Context, sys System, opts options, flags costFlags) error {
	var answer costJSON
	req := costs.Request{By: costs.By(flags.by), Since: flags.since, Until: flags.until, Exact: flags.exact, Zone: sys.Now().Location()}
	err := inProject(ctx, sys, opts, func(ctx context.Context, p *project) (err error) {
		line := startProgress(sys, "summing up")
		defer line.end()
		if answer.Table, err = p.control.Costs.Table(ctx, req); err != nil || !flags.plot {
			return err
		}
		if req.By == costs.Day {
			req.By, req.Bucket = costs.All, costs.Days
		}
		series, err := p.control.Costs.OverTime(ctx, req)
		if err == nil && flags.anyTime && req.By != costs.All && isRecent(series) {
			req.Since = recently
			series, err = p.control.Costs.OverTime(ctx, req)
		}
		answer.OverTime = &series
		return err
	})
	if err != nil {
		return err
	}
	if flags.json {
		return writeJSON(sys.Stdout, answer)
	}
	shown := costDisplay{display: newDisplay(sys, opts), style: plot.Style{ASCII: !showsBlocks(sys)}, zone: sys.Now().Location()}
	return shown.write(answer)
}

// recently is what is drawn hour by hour where nothing is older.
const (
	recently     = "3d"
	recentlyDays = 3
)

// isRecent reports whether all of a series, of days, is of the last three.
func isRecent(s costs.Series) bool {
	for i, n := range s.Total.Threads {
		if n > 0 && i < len(s.At)-recentlyDays {
			return false
		}
	}
	return s.Bucket == costs.Days
}

// showsBlocks reports whether a terminal shows block characters, as far as its
// environment tells: POSIX has the first of these that is set say which characters there are.
func showsBlocks(sys System) bool {
	if sys.Getenv("TERM") == "dumb" {
		return false
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := sys.Getenv(name); locale != "" {
			locale = strings.ToLower(locale)
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return false
}

// costDisplay shows costs to people.
type costDisplay struct {
	display
	style plot.Style
	zone  *time.Location
}

func (d costDisplay) write(answer costJSON) error {
	if len(answer.Rows) == 0 {
		_, err := fmt.Fprintln(d.out, "no thread has used anything in that time; --since all looks at all")
		return err
	}
	if err := d.table(answer.Table); err != nil {
		return err
	}
	if answer.OverTime != nil {
		heeded := &heeding{Writer: d.out}
		d.out = heeded
		d.drawRows(answer)
		d.drawTime(*answer.OverTime)
		if err := heeded.lost(); err != nil {
			return err
		}
	}
	return d.lines("", "This is "+answer.Covers+".")
}

// table has all numbers.
func (d costDisplay) table(t costs.Table) error {
	rows := append(slices.Clone(t.Rows), costs.Row{Key: "total", Use: t.Total})
	figures := [][]string{{"THREADS", "TURNS", "ERRORS", "TOKENS", "SPEND"}}
	for _, r := range rows {
		figures = append(figures, []string{
			strconv.Itoa(r.Threads), strconv.Itoa(r.Turns), strconv.Itoa(r.Errors), strconv.FormatInt(r.Tokens(), 10), r.Spend.String(),
		})
	}
	for column := range figures[0] { // flush right
		widest := 0
		for _, row := range figures {
			widest = max(widest, len(row[column]))
		}
		for _, row := range figures {
			row[column] = strings.Repeat(" ", widest-len(row[column])) + row[column]
		}
	}
	out := table{header: append([]string{strings.ToUpper(string(t.By))}, figures[0]...)}
	for i, r := range rows {
		cells := []cell{text(r.Key)}
		for column, figure := range figures[i+1] {
			c := cell{text: figure}
			if column == 2 && r.Errors > 0 {
				c.color = red
			}
			cells = append(cells, c)
		}
		out.keep(cells)
	}
	out.shortenTo(out.header[0], d.width)
	return out.write(d.display)
}

// keep adds a row whose cells, but for the first, are figures with spaces before them.
func (t *table) keep(cells []cell) {
	cells[0].text = plain.Line(cells[0].text)
	t.rows = append(t.rows, cells)
}
