package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/news"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

type watchFlags struct {
	json     bool
	mine     bool
	children bool
	once     bool
	since    time.Duration
}

func newThreadsWatchCommand(sys System, opts *options) *cobra.Command {
	var flags watchFlags
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Write a line when a thread ends or asks",
		Long: `Write one line for each thread that ends and for each question of a thread, from
now on, until a signal or until nobody reads the lines any more. A line has ids,
state and cost, and no word of what a thread wrote. Of threads that other threads
have started it tells when they ask, and with --children also when they end.

It is for monitors, hooks and plugins: it waits for commits and looks at nothing in
between, and it can be started before any thread has run in the project.

With --once, for hooks that wake a model: it waits until a thread of the same client has
ended or asks, and no answer has told the client so. It writes that to standard error
and ends with code 2. It ends with 0 when no thread works, or another watches already.`,
		Example: `  rye-mcp threads watch --json | while read -r event; do notify-send rye "$event"; done
  rye-mcp threads watch --since 8h        # what ended since this morning, and go on`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if flags.since < 0 {
				return &usageError{message: fmt.Sprintf("--since %s is below 0", flags.since), try: "--since 10m"}
			}
			if flags.once {
				return wakeOnce(cmd.Context(), sys, *opts)
			}
			return watchThreads(cmd.Context(), sys, *opts, flags)
		}),
	}
	cmd.Flags().BoolVar(&flags.mine, "mine", false, "only threads that the program which runs this command has started over MCP, and those below them")
	cmd.Flags().BoolVar(&flags.children, "children", false, "also when threads end that other threads have started")
	cmd.Flags().BoolVar(&flags.once, "once", false, "as a hook: the first of --mine only, on standard error, with code 2")
	cmd.Flags().Var(asDuration(&flags.since, 0), "since", "begin with what came to pass so long ago, such as 10m or 8h (default: now)")
	jsonFlag(cmd, &flags.json)
	return cmd
}

func watchThreads(ctx context.Context, sys System, opts options, flags watchFlags) error {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	ctx, stop := whileRead(ctx, sys.Stdout)
	defer stop()
	following := news.Following{Children: flags.children}
	if flags.since > 0 {
		following.Since = sys.Now().Add(-flags.since)
	}
	if flags.mine {
		following.Of = fromAbove(p.place)
		defer watchFirst(sys, p.place)()
	}
	if p.store.IsOpen() {
		p.tellStrangers(sys)
	} else if following.Appears, err = p.state.finder.Appears(ctx, p.path); err != nil {
		return errors.Join(fmt.Errorf("wait for the first thread: %w", err), p.Close())
	}
	err = p.control.News.Follow(ctx, following, func(e news.Event) error { return writeEvent(sys.Stdout, e, flags.json) })
	if errors.Is(err, syscall.EPIPE) {
		err = nil // nobody reads any more
	}
	return errors.Join(err, p.Close())
}

// exitWakes is the code of a hook of Claude Code that wakes its model with what stands on
// standard error.
const exitWakes = 2

// wakeOnce is watch --once.
func wakeOnce(ctx context.Context, sys System, opts options) error {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	if !p.store.IsOpen() {
		return p.Close()
	}
	lock, err := watchLock(sys, p.place)
	if err != nil {
		return p.Close() // another watches
	}
	defer func() { _ = lock.Remove() }()
	var keys []string
	for _, pid := range process.Above() {
		keys = append(keys, news.Client{Process: thread.Process(p.place.Identify(pid))}.Origin("").Key)
	}
	events, err := p.control.News.Await(ctx, keys)
	for _, e := range events {
		err = errors.Join(err, writeEvent(sys.Stderr, e, false))
	}
	if err = errors.Join(err, p.Close()); err == nil && len(events) > 0 {
		_, _ = fmt.Fprintln(sys.Stderr, "These are threads of rye: wait_threads with the ids reads the results, get_status what one asks.")
		return exitError{code: exitWakes}
	}
	return err
}

// watchFirst keeps --once from telling the same program what watch tells it.
func watchFirst(sys System, place process.Place) (release func()) {
	lock, err := watchLock(sys, place)
	if err != nil {
		return func() {} // it is told twice, at worst
	}
	return func() { _ = lock.Remove() }
}

// watchLock is held by the one process that watches for the program that started it.
func watchLock(sys System, place process.Place) (*process.Lock, error) {
	cache, err := search.CacheDir(sys.Getenv)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "watch")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	above := place.Identify(process.Starter())
	return process.Acquire(filepath.Join(dir, fmt.Sprintf("%d-%d.lock", above.PID, above.Started)))
}

// fromAbove reports whether a process is one of those that have started this one.
func fromAbove(place process.Place) func(thread.Process) bool {
	var above []thread.Process
	for _, pid := range process.Above() {
		above = append(above, thread.Process(place.Identify(pid)))
	}
	return func(p thread.Process) bool { return slices.Contains(above, p) }
}

// whileRead ends with ctx, or when standard output is a pipe that nobody reads.
func whileRead(ctx context.Context, out io.Writer) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if f, ok := out.(*os.File); ok {
		go func() {
			if process.AwaitReaderGone(ctx, f) == nil {
				stop()
			}
		}()
	}
	return ctx, stop
}

func writeEvent(w io.Writer, e news.Event, asJSON bool) error {
	if asJSON {
		line, err := json.Marshal(e)
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		return err
	}
	what := string(e.Status)
	if e.Event == thread.Asked {
		what = "asks"
	}
	_, err := fmt.Fprintf(w, "thread %s %s, %s\n", plain.Line(string(e.ThreadID)), what, e.Cost.Spend)
	return err
}
