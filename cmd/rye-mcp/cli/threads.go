package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newThreadsCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "threads",
		Short: "Look at the threads of a project",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newThreadsListCommand(sys, opts), newThreadsShowCommand(sys, opts), newThreadsTailCommand(sys, opts))
	return cmd
}

func newThreadsListCommand(sys System, opts *options) *cobra.Command {
	var (
		active bool
		asJSON bool
		limit  int
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List threads, newest first",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				req := control.ListRequest{Limit: limit}
				list := p.control.List
				if active {
					list = p.control.ListActive
				}
				threads, err := list(ctx, req)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(sys.Stdout, threads)
				}
				return writeTable(sys.Stdout, threads, sys.Now())
			})
		},
	}
	cmd.Flags().BoolVar(&active, "active", false, "only threads that have not ended")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().IntVar(&limit, "limit", 50, "most threads to list")
	return cmd
}

func newThreadsShowCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show how a thread stands and what it returned",
		Long:  "Show how a thread stands and what it returned. The id may be shortened to any prefix that names one thread.",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return showThread(ctx, sys, p, id, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newThreadsTailCommand(sys System, opts *options) *cobra.Command {
	var (
		followOn bool
		events   int
	)
	cmd := &cobra.Command{
		Use:   "tail ID",
		Short: "Show the end of a thread's transcript",
		Long:  "Show the end of a thread's transcript. The id may be shortened to any prefix that names one thread.",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				if followOn {
					return tailLive(ctx, sys, p, id)
				}
				page, err := transcript.Tail(p.control.TranscriptPath(id), transcript.TailOptions{
					Last: events, MaxBytes: 1 << 20, Text: true,
				})
				if errors.Is(err, os.ErrNotExist) {
					return nil
				}
				if err != nil {
					return err
				}
				_, err = io.WriteString(sys.Stdout, page.Content)
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&followOn, "follow", "f", false, "stream from the beginning until the thread ends")
	cmd.Flags().IntVarP(&events, "events", "n", 20, "so many of the last events")
	return cmd
}

func withProject(ctx context.Context, sys System, opts options, do func(context.Context, *project) error) error {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	p, err := openProject(ctx, sys, dir, newLog(sys, io.Discard))
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, p), p.Close())
}

// withThread is withProject for a command about one thread, whose id may be
// abbreviated.
func withThread(
	ctx context.Context, sys System, opts options, prefix string,
	do func(context.Context, *project, thread.ID) error,
) error {
	return withProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		id, err := completeID(ctx, p, prefix)
		if err != nil {
			return err
		}
		return do(ctx, p, id)
	})
}

// completeID finds the one thread whose id is or begins with what was given.
func completeID(ctx context.Context, p *project, given string) (thread.ID, error) {
	if _, err := thread.ParseID(given); err != nil {
		return "", &usageError{message: err.Error(), try: "rye-mcp threads list"}
	}
	if _, err := p.store.Get(ctx, thread.ID(given)); err == nil {
		return thread.ID(given), nil
	}
	list, err := p.control.List(ctx, control.ListRequest{Text: given, Limit: 100})
	if err != nil {
		return "", err
	}
	var found []string
	for _, t := range list.Threads {
		if strings.HasPrefix(string(t.ThreadID), given) {
			found = append(found, string(t.ThreadID))
		}
	}
	switch len(found) {
	case 0:
		return "", tool.Faultf(tool.CodeNotFound, "no thread %q in this project", given).WithHint("rye-mcp threads list")
	case 1:
		return thread.ID(found[0]), nil
	default:
		return "", tool.Faultf(tool.CodeAmbiguous, "%q begins the id of %d threads", given, len(found)).
			WithHint("one of %s", strings.Join(found, ", "))
	}
}

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

// tailLive streams a transcript until its thread ends; an interrupt ends the
// looking, not the thread.
func tailLive(ctx context.Context, sys System, p *project, id thread.ID) error {
	out := &streamer{out: sys.Stdout, err: sys.Stderr}
	over := make(chan struct{})
	streamed := make(chan error, 1)
	go func() { streamed <- follow(context.WithoutCancel(ctx), p.control.TranscriptPath(id), over, out.see) }()
	_, err := p.control.Wait(ctx, control.WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: 1<<63 - 1})
	close(over)
	return errors.Join(err, <-streamed)
}
