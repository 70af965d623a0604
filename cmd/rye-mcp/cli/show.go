package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// writeJSON writes v indented.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func writeTable(w io.Writer, list control.List, now time.Time) error {
	if len(list.Threads) == 0 {
		_, err := fmt.Fprintln(w, "no threads in this project yet")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "THREAD\tSTATUS\tTURNS\tSPEND\tAGE\tNAME")
	for _, t := range list.Threads {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n",
			t.ThreadID, t.Status, t.Cost.Turns, t.Cost.Spend, age(now.Sub(t.CreatedAt)), t.Name)
	}
	return table.Flush()
}

// age rounds a duration to its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

func showThread(ctx context.Context, sys System, p *project, id thread.ID, asJSON bool) error {
	status, err := p.control.Status(ctx, id)
	if err != nil {
		return err
	}
	results, err := p.control.Aggregate(ctx, []thread.ID{id})
	if err != nil {
		return err
	}
	result := results.Results[id]
	if asJSON {
		return writeJSON(sys.Stdout, struct {
			control.Status
			Result  string         `json:"result,omitempty"`
			Outputs map[string]any `json:"outputs,omitempty"`
		}{status, result.Result, result.Outputs})
	}
	table := tabwriter.NewWriter(sys.Stdout, 0, 4, 2, ' ', 0)
	row := func(name string, value any) { _, _ = fmt.Fprintf(table, "%s\t%v\n", name, value) }
	row("thread", status.ThreadID)
	if status.ResolvedThreadID != "" {
		row("continued as", status.ResolvedThreadID)
	}
	row("name", status.Name)
	row("status", status.Status)
	if status.Error != "" {
		row("error", status.Error)
	}
	row("directive", status.Directive)
	row("model", status.Model)
	row("started", status.CreatedAt.Format(time.RFC3339))
	row("took", fmt.Sprintf("%.1f s", status.ElapsedSeconds))
	row("turns", status.Cost.Turns)
	row("tokens", status.Cost.Tokens())
	row("spend", fmt.Sprintf("%s (with everything below it %s)", status.Cost.Spend, results.Totals.TreeSpend))
	if status.ParentID != "" {
		row("parent", status.ParentID)
	}
	for _, child := range status.Children {
		row("child", child)
	}
	row("transcript", p.control.TranscriptPath(id))
	if err := table.Flush(); err != nil {
		return err
	}
	if result.Result == "" {
		return nil
	}
	_, err = fmt.Fprintf(sys.Stdout, "\n%s\n", result.Result)
	return err
}
