package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// forever is the time of a wait that only its threads end.
const forever = time.Duration(1<<63 - 1)

type waitFlags struct {
	any     bool
	timeout time.Duration
	json    bool
}

func newThreadsWaitCommand(sys System, opts *options) *cobra.Command {
	var flags waitFlags
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until threads have ended",
		Long: `Wait until all of the threads have ended, or with --any until one has. Ctrl-C ends
the waiting, not the threads.

Exit code 0 when all (with --any: one) completed, 1 when one did not, 3 when the
time was up before that.`,
		Example: `  rye-mcp threads wait review-17 --timeout 10m && rye-mcp run report`,
		Args:    usageArgs(cobra.MinimumNArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("timeout") {
				flags.timeout = forever
			}
			if flags.timeout < 0 {
				return &usageError{message: fmt.Sprintf("--timeout %s is below 0", flags.timeout), try: "--timeout 10m"}
			}
			return withThreads(cmd.Context(), sys, *opts, args, func(ctx context.Context, p *project, ids []thread.ID) error {
				return waitThreads(ctx, sys, *opts, p, ids, flags)
			})
		}),
	}
	cmd.ValidArgsFunction = completer{sys: sys, opts: opts}.threads
	cmd.Flags().BoolVar(&flags.any, "any", false, "until one has ended instead of all")
	cmd.Flags().Var(asDuration(&flags.timeout, 0), "timeout", "longest wait, such as 90s or 10m; 0 looks once (default: no bound)")
	jsonFlag(cmd, &flags.json)
	return cmd
}

func waitThreads(ctx context.Context, sys System, opts options, p *project, ids []thread.ID, flags waitFlags) error {
	in := operation.WaitInput{ThreadIDs: ids, Mode: control.WaitAll}
	if flags.any {
		in.Mode = control.WaitAny
	}
	if flags.timeout != forever {
		timeout := flags.timeout.Seconds()
		in.Wait = &timeout
	}
	line := startProgress(sys, "waiting for "+counted(len(ids), "thread"))
	stuck := idle{tell: line.tell}
	by := listening(atTerminal(sys), func(now control.Progress) {
		stuck.look(now)
		says := now.LastSay
		if len(now.Waiting) > 0 {
			says = "waits for an answer: rye-mcp threads approve " + string(now.Waiting[0].ThreadID)
		}
		line.say("%d of %d ended, %s, %s  %s", now.Done, now.Total, counted(now.Turns, "turn"), now.Spend, says)
	})
	result, err := operation.WaitThreads.Run(ctx, p.control, by, in)
	line.end()
	if err != nil {
		return err
	}
	if flags.json {
		err = writeJSON(sys.Stdout, result)
	} else {
		err = writeResults(newDisplay(sys, opts), ids, result)
	}
	if err != nil {
		return err
	}
	return waitVerdict(sys, ids, result, flags.json)
}

func writeResults(d display, ids []thread.ID, waited view.WaitResult) error {
	t := table{header: []string{"THREAD", "STATUS", "TURNS", "SPEND", "RESULT"}}
	for _, id := range ids {
		r := waited.Results[id]
		said := r.Result
		if r.Error != "" {
			said = r.Error
		}
		t.add(text(string(id)), cell{stateOf(r.Status, r.Queued, asks(waited, id), r.Retry != nil), stateColor(r.Status)}, text(strconv.Itoa(r.Cost.Turns)),
			text(r.Cost.Spend.String()), text(plain.Shorten(plain.Line(said), maxSaid)))
	}
	return t.write(d)
}

// asks reports whether a thread that was waited for waits for an answer.
func asks(waited view.WaitResult, id thread.ID) bool {
	id = cmp.Or(waited.Results[id].ResolvedThreadID, id)
	return slices.ContainsFunc(waited.Waiting, func(w view.Waiting) bool { return w.ThreadID == id })
}

// maxSaid is how much of a result stands in a table; threads show has all of it.
const maxSaid = 100

// waitVerdict chooses the exit code, and says why it is not 0.
func waitVerdict(sys System, ids []thread.ID, r view.WaitResult, quiet bool) error {
	verdict := exitError{code: exitFailure}
	message, try := "", ""
	ended := len(ids) - len(r.Pending)
	switch {
	case r.Success:
		return nil
	case r.Mode == control.WaitAll && len(r.Pending) > 0, ended == 0:
		verdict.code = exitTimeout
		message = fmt.Sprintf("the time is up and %d of %s %s not ended", len(r.Pending), counted(len(ids), "thread"),
			verb(len(r.Pending), "has", "have"))
		try = "rye-mcp threads wait " + string(r.Pending[0])
	default:
		for _, id := range ids {
			if s := r.Results[id].Status; s.Terminal() && s != thread.Completed {
				message = fmt.Sprintf("thread %s did not complete: %s", id, s)
				try = "rye-mcp threads show " + string(id)
				break
			}
		}
	}
	if !quiet {
		say(sys.Stderr, message, try)
	}
	return verdict
}

// counted is a number of things, such as "1 thread" or "2 threads".
func counted(n int, thing string) string {
	return fmt.Sprintf("%d %s", n, verb(n, thing, thing+"s"))
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
