package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newThreadsHandoffCommand(sys System, opts *options) *cobra.Command {
	var (
		summary string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "handoff ID",
		Short: "Have a running thread hand over to a new one",
		Long: `Have a running thread hand over to a new thread of the same directive when the turn
that it is in has ended, as it does by itself when its context window is nearly
full. The new thread has a record of the work, the last messages, and the summary
that you give, or one that is written by the settings.

With continuation.approval: ask the thread asks first; see "rye-mcp threads approve".
A thread that has ended is continued by "rye-mcp threads resume".`,
		Example: `  rye-mcp threads handoff review-17
  rye-mcp threads handoff review-17 --summary summary.md`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.liveThreads,
		RunE: func(cmd *cobra.Command, args []string) error {
			var in operation.HandoffInput
			if summary != "" {
				var err error
				if in.Summary, err = givenSummary(cmd.Context(), sys, summary); err != nil {
					return err
				}
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				in.ThreadID = id
				by := atTerminal(sys)
				by.By = "a person, with rye-mcp threads handoff"
				asked, err := operation.HandoffThread.Run(ctx, p.control, by, in)
				if err != nil {
					return err
				}
				return conclude(sys, asJSON, asked, true, func() error {
					what := "hands over after its turn"
					if asked.Approval {
						what = "asks after its turn whether it may hand over: rye-mcp threads approve " + string(id)
					}
					_, err := fmt.Fprintf(sys.Stdout, "%s: %s\n", id, what)
					return err
				})
			})
		},
	}
	cmd.Flags().StringVar(&summary, "summary", "", "file with the summary for the new thread (-: standard input)")
	jsonFlag(cmd, &asJSON)
	return cmd
}
