package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/top"
	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

type topFlags struct {
	mouse bool
	plain bool
}

func newTopCommand(sys System, opts *options) *cobra.Command {
	var flags topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the threads of a project, and answer, steer, cancel and resume them",
		Long: `Watch the threads of a project on the whole terminal: those that ask first, with the
time that is left to answer; the tree with state, turns, money of the limit and how full
the context is; and what the chosen thread does, as it does it. Press ? for the keys:
answer, tell it something, cancel, resume, filter, fold.

Colours are left out with NO_COLOR or --color never, and nothing is told by colour
alone. Where nothing can be drawn, with --plain, or with ACCESSIBLE in the environment
(for screen readers), it writes the tree once, as text, and then a line for each thread
that ends or asks, as rye-mcp threads watch does.

q or Ctrl-C ends the looking; the threads go on.`,
		Example: `  rye-mcp top
  rye-mcp top --mouse
  rye-mcp top --plain`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if flags.plain || sys.Getenv("ACCESSIBLE") != "" || !onTerminal(sys.Stdin) || !redraws(sys, sys.Stdout) {
				return topLines(cmd.Context(), sys, *opts)
			}
			return inProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				return runTop(ctx, sys, *opts, p, flags)
			})
		}),
	}
	cmd.Flags().BoolVar(&flags.mouse, "mouse", false, "choose and scroll with the mouse; the terminal then selects text with Shift only")
	cmd.Flags().BoolVar(&flags.plain, "plain", false, "write lines instead of drawing")
	return cmd
}

// topLines is top where nothing is drawn.
func topLines(ctx context.Context, sys System, opts options) error {
	err := inProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		now, err := p.control.Board.Since(ctx, "", board.Options{})
		if err != nil {
			return err
		}
		for _, line := range top.Lines(now, sys.Now()) {
			if _, err := fmt.Fprintln(sys.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := watchThreads(ctx, sys, opts, watchFlags{children: true}); err != nil && ctx.Err() == nil {
		return err
	}
	return nil // looking ends as threads watch does, whenever that is
}

// runTop draws until the person has seen enough, or the terminal is gone. Actions
// that were begun are brought to their end.
func runTop(ctx context.Context, sys System, opts options, p *project, flags topFlags) error {
	display := newDisplay(sys, opts)
	looking, end := context.WithCancel(ctx)
	defer end()
	acts := &topActions{ctx: looking, sys: sys, project: p}
	model := top.New(acts, top.Options{Project: filepath.Base(p.path), Colors: display.colors, Mouse: flags.mouse, Now: sys.Now()})
	program := tea.NewProgram(model, topOptions(sys, opts, display)...)
	acts.send = program.Send
	acts.others.Go(func() { acts.follow(looking) })
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	end()
	acts.others.Wait()
	if acts.busy.Load() > 0 {
		_, _ = fmt.Fprintln(sys.Stderr, "finishing what was begun …")
	}
	acts.calls.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// topOptions make the program leave signals to the command, and colours to the person.
func topOptions(sys System, opts options, d display) []tea.ProgramOption {
	options := []tea.ProgramOption{
		tea.WithInput(sys.Stdin), tea.WithOutput(sys.Stdout), tea.WithEnvironment(sys.Environ), tea.WithoutSignalHandler(),
	}
	switch {
	case !d.colors:
		options = append(options, tea.WithColorProfile(colorprofile.ASCII))
	case opts.color == colorAlways:
		options = append(options, tea.WithColorProfile(colorprofile.ANSI256))
	}
	return options
}

// followAgain is the time between two attempts to follow a store that is away.
const followAgain = 2 * time.Second

// follow sends boards until ctx ends.
func (a *topActions) follow(ctx context.Context) {
	if err := a.awaitFirst(ctx); err != nil {
		return
	}
	throughAway(ctx, followAgain, func() error {
		return a.project.control.Board.Follow(ctx, "", board.Options{}, func(b board.Board) error {
			a.send(top.BoardMsg(b))
			return nil
		})
	}, func(err error) {
		if errors.Is(err, board.ErrOver) {
			a.send(top.LostMsg{Error: "the project was closed", Try: "rye-mcp top"})
			return
		}
		message, try := explained(err)
		a.send(top.LostMsg{Error: message, Try: try})
	})
}

// throughAway calls follow again, after a pause, as long as it fails because the store is away.
// Lost is told of each failure before ctx ends.
func throughAway(ctx context.Context, pause time.Duration, follow func() error, lost func(error)) {
	for {
		err := follow()
		if ctx.Err() != nil {
			return
		}
		lost(err)
		if !threads.StoreIsAway(err) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// awaitFirst waits for the first thread of a project in which none has run, and shows
// meanwhile that there is none.
func (a *topActions) awaitFirst(ctx context.Context) error {
	if a.project.store.IsOpen() {
		return nil
	}
	a.send(top.BoardMsg{Whole: true, At: a.sys.Now()})
	appears, err := a.project.state.finder.Appears(ctx, a.project.path)
	if err != nil {
		a.send(top.LostMsg{Error: "cannot wait for the first thread: " + err.Error(), Try: "rye-mcp top, after it was started"})
		return err
	}
	for !a.project.store.IsOpen() {
		if _, err := a.project.store.Now(ctx); err != nil {
			message, try := explained(err)
			a.send(top.LostMsg{Error: message, Try: try})
			return err
		}
		if a.project.store.IsOpen() {
			return nil
		}
		select {
		case <-appears:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Look makes what the thread does come in, in place of what another does.
func (a *topActions) Look(id thread.ID) {
	a.looking.Lock()
	defer a.looking.Unlock()
	if a.unlook != nil {
		a.unlook()
		a.unlook = nil
	}
	if id == "" {
		return
	}
	ctx, unlook := context.WithCancel(a.ctx)
	a.unlook = unlook
	said := a.project.control.Threads.Transcript(id)
	a.others.Go(func() { tailInto(ctx, said, id, a.send) })
}
