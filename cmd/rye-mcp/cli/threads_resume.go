package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func newThreadsResumeCommand(sys System, opts *options) *cobra.Command {
	var flags startFlags
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "resume ID MESSAGE",
		Short: "Resume a thread that has ended, with a message",
		Long: `Resume a thread that has ended: a new thread of the same directive gets its
whole conversation and the message, or what standard input has when the message is
"-". Its answer is shown as "rye-mcp run" shows one, and Ctrl-C cancels it.

Of a chain the newest thread is continued, whichever is named. It has the limits
that the work was started with; --limit gives it others.

Exit code 0 when the new thread completed, 1 when it did not, 130 when it was
cancelled.`,
		Example: `  rye-mcp threads resume review-17 "Now look at the tests too."
  rye-mcp threads resume review-17 - --limit turns=40 < remarks.md`,
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: complete.endedThread,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := operation.ResumeInput{Model: flags.model}
			var err error
			if in.Limits, err = flags.overrides(); err != nil {
				return err
			}
			if in.Message, err = givenMessage(cmd.Context(), sys, "resume", args); err != nil {
				return err
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				in.ThreadID = id
				var err error
				if p.told, err = offerSettings(sys, *opts, p.resolver.Roots(), flags.json); err != nil {
					return err
				}
				return resumeThread(ctx, sys, *opts, p, in, flags.json)
			})
		},
	}
	flags.add(cmd, complete, "the one it had")
	return cmd
}

// maxMessage bounds what a thread can be told at once, in bytes.
const maxMessage = 1 << 20

// givenMessage is what a command about the thread of the first argument tells it, which
// must be something.
func givenMessage(ctx context.Context, sys System, command string, args []string) (string, error) {
	message := strings.Join(args[1:], "")
	if message == "-" {
		var err error
		if message, err = readMessage(ctx, sys.Stdin); err != nil {
			return "", err
		}
	}
	switch {
	case strings.TrimSpace(message) == "":
		return "", &usageError{
			message: "there is no message to " + command + " the thread with",
			try:     fmt.Sprintf("rye-mcp threads %s %s \"MESSAGE\", or - to read it from standard input", command, args[0]),
		}
	case len(message) > maxMessage:
		return "", &usageError{
			message: fmt.Sprintf("the message is longer than %d bytes", maxMessage),
			try:     "put it into a file of the project, and name that in the message",
		}
	}
	return message, nil
}

// readMessage reads to the end of a stream, or of ctx: a person may have second
// thoughts while writing. A text is cut behind maxMessage.
func readMessage(ctx context.Context, from io.Reader) (string, error) {
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	go func() { // outlives an interrupt, and ends with the program
		text, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
		read <- input{text, err}
	}()
	select {
	case in := <-read:
		return string(in.text), in.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// resumedJSON is what threads resume writes with --json.
type resumedJSON struct {
	runJSON
	OldThreadID        thread.ID `json:"old_thread_id"`
	ReconstructedTurns int       `json:"reconstructed_turns"`
	Shortened          bool      `json:"shortened,omitempty"`
}

func resumeThread(
	ctx context.Context, sys System, opts options, p *project, in operation.ResumeInput, asJSON bool,
) error {
	// An interrupt must not leave a thread behind of which nobody knows the id.
	resumed, err := operation.ResumeThread.Run(context.WithoutCancel(ctx), p.control, atTerminal(sys), in)
	if err != nil {
		return err
	}
	id := resumed.NewThreadID
	if !asJSON {
		_, _ = fmt.Fprintf(sys.Stderr, "thread %s continues %s after %s\n", id, resumed.OldThreadID,
			counted(resumed.ReconstructedTurns, "turn"))
		if resumed.Shortened {
			_, _ = fmt.Fprintln(sys.Stderr, "its conversation is too long for the model: it has a record of the work and the last messages")
		}
	}
	return showRun(ctx, sys, opts, p, resumed.NewThreadResult, asJSON, func(run runJSON) any {
		return resumedJSON{run, resumed.OldThreadID, resumed.ReconstructedTurns, resumed.Shortened}
	})
}
