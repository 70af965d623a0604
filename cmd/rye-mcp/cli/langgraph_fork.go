package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/mirror"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newLangGraphForkCommand(sys System, opts *options) *cobra.Command {
	var (
		flags     runFlags
		directive string
	)
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "fork ID [MESSAGE]",
		Short: "Go on here with a thread of the server",
		Long: `Copy a thread of the server there, and start a thread here that is told what was said in
it. ID is the UUID of a thread there, or the id of a thread here. Nothing changes of the
thread that is copied, and the copy becomes that of the new thread.

The new thread is a run of a directive: --directive, else that of the thread here which
the copied one belongs to, with the same inputs. It has the directive's permissions and
limits. What was said there stands behind its task, as a quotation: nothing in it counts
as an instruction. A message of yours comes last.`,
		Example: `  rye-mcp langgraph fork review-17 "Look at what was said there about the tests."
  rye-mcp langgraph fork acb8a3cb-bcae-4979-b79a-6ba32faa016c --directive team/review --input path=src`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			message := ""
			if len(args) > 1 {
				var err error
				if message, err = givenMessage(cmd.Context(), sys, "fork", args); err != nil {
					return err
				}
			}
			return inProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				return forkFromMirror(ctx, sys, *opts, p, args[0], directive, message, flags)
			})
		},
	}
	cmd.Flags().StringVar(&directive, "directive", "", "what the new thread is a run of")
	cmd.Flags().StringArrayVarP(&flags.inputs, "input", "i", nil, "an input as `name=value`; repeat for more")
	cmd.Flags().StringArrayVar(&flags.env, inputEnvFlag, nil, "an input as `name=VARIABLE` of the environment that holds it; repeat for more")
	cmd.Flags().StringVar(&flags.name, "name", "", "what the thread is called")
	flags.add(cmd, complete, "the directive's")
	completeWith(cmd, "input", complete.inputs)
	return cmd
}

// forkFromMirror starts a thread with what was said in one of the server, and shows it.
func forkFromMirror(ctx context.Context, sys System, opts options, p *project, given, directive, message string, flags runFlags) error {
	m, err := p.mirroring.mirrorOf(sys, newLog(sys, sys.Stderr))
	if err != nil {
		return err
	}
	defer m.Client.Close()
	if m.Place == "" { // its threads begin with this one
		made, err := p.state.Make()
		if err != nil {
			return err
		}
		m.Place = made.Seal.Place()
	}
	id, err := mirrorID(ctx, p, m, given)
	if err != nil {
		return err
	}
	if p.told, err = offerSettings(sys, opts, p.resolver.Roots(), flags.json); err != nil {
		return err
	}
	// An interrupt must not leave a thread behind of which nobody knows the id.
	started, err := startFork(context.WithoutCancel(ctx), sys, p, m, id, directive, message, flags)
	if err != nil {
		return err
	}
	return showStarted(ctx, sys, opts, p, started, flags.json)
}

// mirrorID is the thread there that is named: by its own id, or by that of a thread here.
func mirrorID(ctx context.Context, p *project, m *mirror.Mirror, given string) (uuid.UUID, error) {
	if id, err := uuid.Parse(given); err == nil && len(given) == 36 {
		return id, nil
	}
	there, err := p.hasThreads(ctx, p.mirroring.sys)
	if err != nil {
		return uuid.Nil, err
	}
	if !there {
		return uuid.Nil, errNoThreads
	}
	ids, err := completeIDs(ctx, p, []string{given})
	if err != nil {
		return uuid.Nil, err
	}
	rec, err := p.store.Get(ctx, ids[0])
	return m.IDOf(rec), err
}

// startFork makes the copy there and starts the thread here, both or none.
func startFork(
	ctx context.Context, sys System, p *project, m *mirror.Mirror, id uuid.UUID, directive, message string, flags runFlags,
) (view.Started, error) {
	begun, err := m.BeginFork(ctx, id, sys.Now())
	if err != nil {
		giveUp(ctx, sys, m, begun)
		return view.Started{}, forkFault(err)
	}
	req, err := forkRequest(ctx, sys, p, begun, directive, flags)
	var started view.Started
	if err == nil {
		text := mirror.Quote(id, begun.Messages)
		if message != "" {
			text += "\n\n" + message
		}
		started, err = p.control.StartFrom(ctx, atTerminal(sys), req, control.Outside{Text: text, MirroredAs: begun.ID.String()})
	}
	if err != nil {
		giveUp(ctx, sys, m, begun)
	}
	return started, err
}

// giveUp takes the copy away that a fork has made which came to nothing. Where that fails
// a sweep does, an hour later.
func giveUp(ctx context.Context, sys System, m *mirror.Mirror, begun mirror.Begun) {
	if err := m.GiveUp(ctx, begun); err != nil {
		_, _ = fmt.Fprintf(sys.Stderr, "Warning: the copy that was made there, %s, is left: %s\n", begun.ID, plain.Line(err.Error()))
	}
}

// forkRequest is the start of the new thread. Directive and inputs that are not given are
// those of the thread here whose copy was forked: nothing of them comes from the server.
func forkRequest(ctx context.Context, sys System, p *project, begun mirror.Begun, directive string, flags runFlags) (action.StartRequest, error) {
	if directive != "" {
		return startRequest(p, sys.Getenv, directive, flags)
	}
	none := &usageError{message: "which directive the new thread is a run of is not known: what is forked is no thread of this project", try: "--directive team/review"}
	if begun.Thread == "" {
		return action.StartRequest{}, none
	}
	rec, err := p.store.Get(ctx, begun.Thread)
	if err != nil {
		return action.StartRequest{}, none
	}
	meta, err := p.control.Threads.OwnMeta(rec.ThreadID)
	if err != nil {
		return action.StartRequest{}, err
	}
	req, err := startRequest(p, sys.Getenv, rec.Directive, flags)
	if len(flags.inputs)+len(flags.env) == 0 {
		req.Inputs = continuation.OwnInputs(meta.Inputs)
	}
	return req, err
}

// forkFault says what a person can do about a thread there that cannot be forked.
func forkFault(err error) error {
	if errors.Is(err, langgraph.ErrNotFound) {
		return tool.Faultf(tool.CodeNotFound, "%w", err).WithTry("rye-mcp langgraph sync --dry-run shows what differs there")
	}
	return mirrorFault(err)
}
