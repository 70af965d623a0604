package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// stopping is one way to stop threads.
type stopping struct {
	verb, doing string
	short, long string
	operation   operation.Operation[operation.StopInput, stop.Stopped]
}

func newThreadsCancelCommand(sys System, opts *options) *cobra.Command {
	return newStopCommand(sys, opts, stopping{
		verb: "cancel", doing: "cancelling", operation: operation.CancelThread,
		short: "Stop threads and everything below them",
		long: `Stop threads and everything below them: each is interrupted and settles what it
did; one that does not end in the time that agent.yaml gives is terminated and
then killed.`,
	})
}

func newThreadsKillCommand(sys System, opts *options) *cobra.Command {
	return newStopCommand(sys, opts, stopping{
		verb: "kill", doing: "killing", operation: operation.KillThread,
		short: "Stop threads and everything below them by force",
		long: `Stop threads and everything below them by force: SIGTERM at once, and SIGKILL for
what lives three seconds later.`,
	})
}

func newStopCommand(sys System, opts *options, how stopping) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   how.verb + " ID...",
		Short: how.short,
		Long: how.long + ` Each has a receipt that says how it ended.

A thread that had ended before is no failure, so it can be repeated. With --json
there is one object for each thread that was named.`,
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.liveThreads,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return withThreads(cmd.Context(), sys, *opts, args, func(ctx context.Context, p *project, ids []thread.ID) error {
				return stopThreads(ctx, sys, *opts, p, ids, how, asJSON)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// maxStopping is how many trees are stopped at the same time.
const maxStopping = 8

func stopThreads(
	ctx context.Context, sys System, opts options, p *project, ids []thread.ID, how stopping, asJSON bool,
) error {
	stopped := make([]stop.Stopped, len(ids))
	errs := make([]error, len(ids))
	line := startProgress(sys, how.doing+" "+counted(len(ids), "thread")+" and what they started")
	concurrently(len(ids), maxStopping, func(i int) {
		stopped[i], errs[i] = how.operation.Run(ctx, p.control, atTerminal(sys), operation.StopInput{ThreadIDs: ids[i : i+1]})
	})
	line.end()
	// A failure stays a failure when nobody reads the receipts.
	if err := tellStopped(sys, opts, stopped, asJSON); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return stopVerdict(sys, stopped, asJSON)
}

func tellStopped(sys System, opts options, stopped []stop.Stopped, asJSON bool) error {
	t := table{header: []string{"THREAD", "STATUS", "HOW", "SPEND"}}
	for _, s := range stopped {
		if s.ThreadID == "" {
			continue // the error about it is told instead
		}
		if asJSON {
			if err := writeJSON(sys.Stdout, s); err != nil {
				return err
			}
		}
		for _, r := range s.Receipts {
			how := strings.ReplaceAll(r.How, "_", " ")
			if r.Error != "" {
				how = r.Error
			}
			t.add(text(string(r.ThreadID)), cell{string(r.Status), stateColor(r.Status)}, text(how), text(r.Spend.String()))
		}
	}
	if asJSON || len(t.rows) == 0 {
		return nil
	}
	return t.write(newDisplay(sys, opts))
}

func stopVerdict(sys System, stopped []stop.Stopped, quiet bool) error {
	var left []string
	for _, s := range stopped {
		if !s.Success {
			left = append(left, string(s.ThreadID))
		}
	}
	if len(left) == 0 {
		return nil
	}
	if !quiet {
		say(sys.Stderr, fmt.Sprintf("%s could not be stopped", counted(len(left), "thread")),
			"rye-mcp threads kill "+strings.Join(left, " "))
	}
	return exitError{code: exitFailure}
}
