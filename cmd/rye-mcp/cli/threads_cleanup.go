package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newThreadsCleanupCommand(sys System, opts *options) *cobra.Command {
	var (
		how    deleting
		req    tidy.CleanupRequest
		states []string
	)
	cmd := &cobra.Command{
		Use:   "cleanup --older-than AGE",
		Short: "Delete threads that have ended and were not used for a time",
		Long: `Delete threads that have ended and were not used for a time, such as 30d, 12h or
0s, with their chains and all below them. A chain is judged by its newest thread;
where something in it, below or above it lives, or was used since, it stays. You are
shown what goes and asked; --yes does not ask.`,
		Example: `  rye-mcp threads cleanup --older-than 30d --dry-run
  rye-mcp threads cleanup --older-than 12h --status error --directive review --yes`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if _, err := tidy.ParseAge(req.OlderThan); err != nil {
				return &usageError{message: "--older-than: " + err.Error(), try: "--older-than 30d"}
			}
			for _, state := range states {
				req.Status = append(req.Status, thread.State(state))
			}
			if _, err := tidy.ParseEnded(req.Status); err != nil {
				return &usageError{message: "--status: " + err.Error(), try: "--status completed,error,cancelled,continued"}
			}
			return withProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				return cleanThreads(ctx, sys, p, req, how)
			})
		}),
	}
	cmd.Flags().StringVar(&req.OlderThan, "older-than", "", "not used for so long: 30d, 12h, 0s")
	cmd.Flags().StringSliceVar(&states, "status", nil, "only those in these `states`: completed, error, cancelled, continued")
	cmd.Flags().StringVar(&req.Directive, "directive", "", "only of this directive")
	how.flags(cmd)
	return cmd
}

// cleanThreads shows what goes, asks, and deletes until nothing is left of what was shown.
func cleanThreads(ctx context.Context, sys System, p *project, req tidy.CleanupRequest, how deleting) error {
	line := startProgress(sys, "looking at the threads")
	req.DryRun = true
	shown, err := p.control.Tidy.Cleanup(ctx, req)
	line.end()
	if err != nil {
		return err
	}
	if how.dryRun && how.asJSON {
		return writeJSON(sys.Stdout, shown)
	}
	if how.dryRun || !how.yes {
		if err := tellFound(sys, shown); err != nil || how.dryRun || shown.Threads == 0 {
			return err
		}
		yes, err := confirm(sys, "\nDelete them for ever?", "--yes deletes them, --dry-run shows them")
		if err != nil || !yes {
			return left(sys, err)
		}
	}
	req.DryRun, req.Agreed, req.Until = false, true, shown.Until()
	return cleanAll(ctx, sys, p, req, how.asJSON)
}

// cleanAll deletes a part at a time, until nothing more goes.
func cleanAll(ctx context.Context, sys System, p *project, req tidy.CleanupRequest, asJSON bool) error {
	line := startProgress(sys, "deleting threads")
	began := sys.Now()
	sum := tidy.Cleaned{Success: true, ThreadIDs: []thread.ID{}}
	for {
		before := sum.Threads
		req.Progress = func(p tidy.Progress) { line.say("deleting threads: %d", before+p.Done) }
		told, err := p.control.Tidy.Cleanup(ctx, req)
		sum = sum.And(told)
		if err != nil || told.Threads == 0 || told.Left == 0 {
			line.end()
			return errors.Join(tellCleaned(sys, sum, sys.Now().Sub(began), asJSON), err)
		}
	}
}

func tellFound(sys System, c tidy.Cleaned) error {
	_, err := fmt.Fprintf(sys.Stdout, "%s, not used since %s: %s, %s spent%s%s\n",
		counted(c.Threads, "thread"), c.UsedUntil, sizeOf(c.Bytes), c.Spend, goesAlong(c), stays(c))
	for _, id := range c.ThreadIDs {
		if err == nil {
			_, err = fmt.Fprintf(sys.Stdout, "  %s\n", id)
		}
	}
	return err
}

// goesAlong says what else goes.
func goesAlong(c tidy.Cleaned) string {
	if len(c.With) == 0 {
		return ""
	}
	return "; with " + strings.Join(c.With, "; ")
}

// stays says what is old enough and does not go, or not yet.
func stays(c tidy.Cleaned) (said string) {
	if c.Kept > 0 {
		said = fmt.Sprintf("; %s stay, as something with them lives or was used since", counted(c.Kept, "thread"))
	}
	if c.Left > 0 {
		said += fmt.Sprintf("; %d more follow", c.Left)
	}
	return said
}

func tellCleaned(sys System, c tidy.Cleaned, took time.Duration, asJSON bool) error {
	if asJSON {
		c.ThreadIDs = c.ThreadIDs[:min(len(c.ThreadIDs), 20)]
		return writeJSON(sys.Stdout, c)
	}
	_, err := fmt.Fprintf(sys.Stdout, "deleted %s, %s, in %.1f s%s%s\n", counted(c.Threads, "thread"), sizeOf(c.Bytes), took.Seconds(), goesAlong(c), stays(c))
	return errors.Join(err, tellLeft(sys, c.Failed))
}
