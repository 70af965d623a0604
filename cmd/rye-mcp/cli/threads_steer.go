package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newThreadsSteerCommand(sys System, opts *options) *cobra.Command {
	var in operation.SteerInput
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "steer ID MESSAGE",
		Short: "Tell a thread something while it works",
		Long: `Tell a thread something while it works, or what standard input has when the
message is "-". The thread reads it before its next call of the model, once and in
the order of the messages; it does not end before. A wait for other threads ends for
it, a call of the model or a tool that is on its way only with --interrupt.

The message is kept when the thread is queued, asks something or hands over: its
successor reads it. A thread that has ended reads nothing: threads resume goes on
with its conversation. Each call is another message.`,
		Example: `  rye-mcp threads steer review-17 "Leave the generated files out."
  rye-mcp threads steer review-17 --interrupt - < remarks.md`,
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.liveThreads,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			var err error
			if in.Message, err = givenMessage(cmd.Context(), sys, "steer", args); err != nil {
				return err
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				in.ThreadID = id
				told, err := operation.SteerThread.Run(ctx, p.control, atTerminal(sys), in)
				if err != nil {
					return err
				}
				return conclude(sys, asJSON, told, true, func() error {
					to := id
					if told.ResolvedThreadID != "" {
						to = told.ResolvedThreadID
					}
					_, err := fmt.Fprintf(sys.Stdout, "%s: message %d of those it has not read; it reads it %s.\n", to, told.Position, told.ReadWhen)
					return err
				})
			})
		}),
	}
	cmd.Flags().BoolVar(&in.Interrupt, "interrupt", false, "break off what the thread does now")
	jsonFlag(cmd, &asJSON)
	return cmd
}
