package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newThreadsForkCommand(sys System, opts *options) *cobra.Command {
	var (
		atTurn int
		name   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "fork ID [MESSAGE]",
		Short: "Copy a thread, up to a turn, into one of its own",
		Long: `Copy a thread into a thread of its own, which begins with the same conversation, up
to a turn, and has a budget of its own. The thread that is copied may be in any
state, and nothing of it changes: one that runs is copied as it stood after its
last turn.

With a message, or what standard input has when the message is "-", the copy goes on
at once; its answer is shown as "rye-mcp run" shows one, and Ctrl-C cancels it.
Without one its id is written, and "rye-mcp threads resume" goes on with it.

The thread that is named is copied, also where another continues it. The copy may do
what that one may, and no more.

Exit code 0 when the copy stands or completed, 1 when it did not, 130 when it was
cancelled.`,
		Example: `  rye-mcp threads fork review-17 --at-turn 3 "Look at the tests instead."
  rye-mcp threads fork latest --name "before the refactoring"`,
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := operation.ForkInput{Name: name}
			if cmd.Flags().Changed("at-turn") {
				in.AtTurn = &atTurn
			}
			if len(args) > 1 {
				var err error
				if in.Message, err = givenMessage(cmd.Context(), sys, "fork", args); err != nil {
					return err
				}
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				in.ThreadID = id
				var err error
				if p.told, err = offerSettings(sys, *opts, p.resolver.Roots(), asJSON); err != nil {
					return err
				}
				return forkThread(ctx, sys, *opts, p, in, asJSON)
			})
		},
	}
	cmd.Flags().IntVar(&atTurn, "at-turn", 0, "the last turn to copy (default the last there is)")
	cmd.Flags().StringVar(&name, "name", "", "name of the copy (default from the message)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// forkedJSON is what threads fork writes with --json of a copy that has run.
type forkedJSON struct {
	runJSON
	ForkedFrom thread.ID `json:"forked_from"`
	AtTurn     int       `json:"at_turn"`
	Turns      int       `json:"turns"`
	Shortened  bool      `json:"shortened,omitempty"`
}

func forkThread(
	ctx context.Context, sys System, opts options, p *project, in operation.ForkInput, asJSON bool,
) error {
	// An interrupt must not leave a thread behind of which nobody knows the id.
	forked, err := operation.ForkThread.Run(context.WithoutCancel(ctx), p.control, atTerminal(sys), in)
	if err != nil {
		return err
	}
	id := forked.ThreadID
	if !asJSON {
		_, _ = fmt.Fprintf(sys.Stderr, "thread %s is a copy of %s with %s\n", id, forked.ForkedFrom, counted(forked.Turns, "turn"))
		if forked.ContinuedBy != "" {
			_, _ = fmt.Fprintf(sys.Stderr, "%s continues that one, and was not copied\n", forked.ContinuedBy)
		}
		if forked.Shortened {
			_, _ = fmt.Fprintln(sys.Stderr, "its conversation is too long for the model: it has a record of the work and the last messages")
		}
	}
	switch {
	case forked.Run == nil && asJSON:
		return writeJSON(sys.Stdout, forked)
	case forked.Run == nil:
		_, _ = fmt.Fprintf(sys.Stderr, "to go on with it: rye-mcp threads resume %s MESSAGE\n", id)
		_, err := fmt.Fprintln(sys.Stdout, id)
		return err
	}
	return showRun(ctx, sys, opts, p, *forked.Run, asJSON, func(run runJSON) any {
		return forkedJSON{run, forked.ForkedFrom, forked.AtTurn, forked.Turns, forked.Shortened}
	})
}
