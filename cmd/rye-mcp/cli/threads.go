package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newThreadsCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "threads",
		Short: "Look at the threads of a project, wait for them, stop and resume them",
		Long: `Look at the threads of a project, wait for them, stop and resume them. An id may
be shortened to any prefix that names one thread; "latest" is the newest thread,
and "latest:review" the newest of the directive review.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newThreadsListCommand(sys, opts), newThreadsShowCommand(sys, opts), newThreadsRenameCommand(sys, opts), newThreadsMetaCommand(sys, opts), newThreadsTailCommand(sys, opts),
		newThreadsMapCommand(sys, opts),
		newThreadsWaitCommand(sys, opts), newThreadsCancelCommand(sys, opts), newThreadsKillCommand(sys, opts),
		newThreadsApproveCommand(sys, opts), newThreadsSteerCommand(sys, opts), newThreadsResumeCommand(sys, opts), newThreadsForkCommand(sys, opts), newThreadsHandoffCommand(sys, opts), newThreadsChainCommand(sys, opts),
		newThreadsDiffCommand(sys, opts), newThreadsApplyCommand(sys, opts),
		newThreadsVerifyCommand(sys, opts), newThreadsReceiptCommand(sys, opts),
		newThreadsExportCommand(sys, opts), newThreadsImportCommand(sys, opts),
		newThreadsCostCommand(sys, opts), newThreadsHealthCommand(sys, opts), newThreadsReconcileCommand(sys, opts),
		newThreadsDeleteCommand(sys, opts), newThreadsCleanupCommand(sys, opts), newThreadsVacuumCommand(sys, opts),
		newThreadsCallCommand(sys, opts, operation.All()), newThreadsWatchCommand(sys, opts),
	)
	return cmd
}

func newThreadsShowCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "show ID",
		Aliases:           []string{"info"},
		Short:             "Show what is known of a thread: how it stands, its labels, sizes and result",
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return showThread(ctx, sys, *opts, p, id, asJSON)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func newThreadsTailCommand(sys System, opts *options) *cobra.Command {
	var (
		followOn bool
		events   int
		asJSON   bool
	)
	cmd := &cobra.Command{
		Use:   "tail ID",
		Short: "Show what a thread said and did last, or what it does",
		Long: `Show what a thread said and did last, or with --follow all of it, as it comes: what
the model writes, each call of a tool with what it is about, how long it took and what
it gave or why it failed, questions and their answers, and what each turn cost. With
--follow it goes on to the thread that continues this one, and ends with the last.

Ctrl-C ends the looking and not the thread. rye-mcp threads show has the result.`,
		Example: `  rye-mcp threads tail latest -f
  rye-mcp threads tail latest:review -n 50
  rye-mcp threads tail latest -f --json | jq -r .event_type`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if events < 1 {
				return &usageError{message: fmt.Sprintf("--events %d is not above 0", events), try: "--events 20"}
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				if followOn {
					return tailLive(ctx, sys, p, id, newSeer(sys, *opts, asJSON))
				}
				return tailOnce(sys, *opts, p, id, events, asJSON)
			})
		}),
	}
	cmd.Flags().BoolVarP(&followOn, "follow", "f", false, "stream from the beginning until the thread, or what continues it, ends")
	cmd.Flags().IntVarP(&events, "events", "n", 20, "so many of the last events")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the events, one a line")
	return cmd
}

// errNoThreads means that no thread has ever run in the project.
var errNoThreads = tool.Faultf(tool.CodeNotFound, "no thread has run in this project yet").
	WithHint("rye-mcp run DIRECTIVE")

// withProject opens the project to look at it. A folder without threads is left
// as it is: looking makes no state.
func withProject(ctx context.Context, sys System, opts options, do func(context.Context, *project) error) error {
	return inProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		switch there, err := p.hasThreads(ctx, sys); {
		case err != nil:
			return err
		case !there:
			return errNoThreads
		}
		return do(ctx, p)
	})
}

// inProject is withProject for what has something to say of a folder without threads,
// which then has a store of none.
func inProject(ctx context.Context, sys System, opts options, do func(context.Context, *project) error) error {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	err = do(ctx, p)
	p.mirroring.sendLeftBehind(ctx)
	return errors.Join(err, p.Close())
}

// hasThreads reports whether a thread has ever run in the project, and says whose are left
// as they are.
func (p *project) hasThreads(ctx context.Context, sys System) (bool, error) {
	there, err := p.store.Now(ctx)
	if err == nil && there == nil {
		p.tellStrangers(sys)
	}
	return there != nil, err
}

// openNamed opens the project that the options name.
func openNamed(ctx context.Context, sys System, opts options) (*project, error) {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return nil, err
	}
	if dir, err = canonical(dir); err != nil {
		return nil, err
	}
	return openProject(ctx, sys, dir, newLog(sys, io.Discard))
}

// withThreads is withProject for a command about threads, whose ids may be
// abbreviated. Nothing is done when one of them names none, or several; one that
// is named twice counts once.
func withThreads(
	ctx context.Context, sys System, opts options, given []string,
	do func(context.Context, *project, []thread.ID) error,
) error {
	return withProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		ids, err := completeIDs(ctx, p, given)
		if err != nil {
			return err
		}
		return do(ctx, p, ids)
	})
}

// withThread is withThreads for a command about one.
func withThread(
	ctx context.Context, sys System, opts options, given string,
	do func(context.Context, *project, thread.ID) error,
) error {
	return withThreads(ctx, sys, opts, []string{given}, func(ctx context.Context, p *project, ids []thread.ID) error {
		return do(ctx, p, ids[0])
	})
}

// newSeer makes what shows the events of a thread to a person, or as JSON.
func newSeer(sys System, opts options, asJSON bool) func(thread.Event) error {
	if !asJSON {
		return newLookStreamer(sys, opts).see
	}
	return func(e thread.Event) error {
		line, err := json.Marshal(e)
		if err == nil {
			_, err = sys.Stdout.Write(append(line, '\n'))
		}
		return err
	}
}

// tailOnce shows the last events of a transcript, and to a person what the model writes
// now. A thread that has written nothing yet has none.
func tailOnce(sys System, opts options, p *project, id thread.ID, n int, asJSON bool) error {
	said := p.control.Threads.Transcript(id)
	events, err := transcript.LastEvents(said, n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	see := newSeer(sys, opts, asJSON)
	for _, e := range events {
		if err := see(e); err != nil {
			return err
		}
	}
	if err != nil || asJSON {
		return err
	}
	newest, err := transcript.Last(said)
	if err == nil && newest.Event == thread.EventTokenDelta && newest.Text != "" {
		_, err = fmt.Fprintln(sys.Stdout, plain.Lines(newest.Text))
	}
	return err
}

// tailLive streams a transcript until its thread ends; an interrupt ends the
// looking, not the thread.
func tailLive(ctx context.Context, sys System, p *project, id thread.ID, see func(thread.Event) error) error {
	unread := func(err error) error { return err }
	return stream(ctx, p.control.Threads.Transcript, id, see, unread, func(ctx context.Context) error {
		_, err := p.control.Wait(ctx, untilEnd(sys, id))
		return err
	})
}
