package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newThreadsCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "threads",
		Short: "Look at the threads of a project",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newThreadsListCommand(sys, opts), newThreadsShowCommand(sys, opts), newThreadsTailCommand(sys, opts))
	return cmd
}

// maxListed is the longest page of a list.
const maxListed = 100

func newThreadsListCommand(sys System, opts *options) *cobra.Command {
	var (
		active bool
		asJSON bool
		limit  int
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List threads, newest first",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > maxListed {
				return &usageError{message: fmt.Sprintf("--limit %d is not between 1 and %d", limit, maxListed), try: "--limit 50"}
			}
			threads := control.List{Success: true, Threads: []control.Summary{}}
			err := withProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) (err error) {
				list := p.control.List
				if active {
					list = p.control.ListActive
				}
				threads, err = list(ctx, control.ListRequest{Limit: limit})
				return err
			})
			if err != nil && !errors.Is(err, errNoThreads) {
				return err
			}
			if asJSON {
				return writeJSON(sys.Stdout, threads)
			}
			return writeTable(sys.Stdout, threads, sys.Now())
		},
	}
	cmd.Flags().BoolVar(&active, "active", false, "only threads that have not ended")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().IntVar(&limit, "limit", 50, "most threads to list")
	return cmd
}

func newThreadsShowCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show how a thread stands and what it returned",
		Long:  "Show how a thread stands and what it returned. The id may be shortened to any prefix that names one thread.",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return showThread(ctx, sys, p, id, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newThreadsTailCommand(sys System, opts *options) *cobra.Command {
	var (
		followOn bool
		events   int
	)
	cmd := &cobra.Command{
		Use:   "tail ID",
		Short: "Show the end of a thread's transcript",
		Long:  "Show the end of a thread's transcript. The id may be shortened to any prefix that names one thread.",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if events < 1 {
				return &usageError{message: fmt.Sprintf("--events %d is not above 0", events), try: "--events 20"}
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				if followOn {
					return tailLive(ctx, sys, p, id)
				}
				return tailOnce(sys, p, id, events)
			})
		},
	}
	cmd.Flags().BoolVarP(&followOn, "follow", "f", false, "stream from the beginning until the thread ends")
	cmd.Flags().IntVarP(&events, "events", "n", 20, "so many of the last events")
	return cmd
}

// errNoThreads means that no thread has ever run in the project.
var errNoThreads = tool.Faultf(tool.CodeNotFound, "no thread has run in this project yet").
	WithHint("rye-mcp run DIRECTIVE")

// withProject opens the project to look at it. A folder without threads is left
// as it is: looking makes no state.
func withProject(ctx context.Context, sys System, opts options, do func(context.Context, *project) error) error {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	if dir, err = canonical(dir); err != nil {
		return err
	}
	if _, err := os.Stat(folder.StateDir(dir)); errors.Is(err, fs.ErrNotExist) {
		return errNoThreads
	}
	p, err := openProject(ctx, sys, dir, newLog(sys, io.Discard))
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, p), p.Close())
}

// withThread is withProject for a command about one thread, whose id may be
// abbreviated.
func withThread(
	ctx context.Context, sys System, opts options, prefix string,
	do func(context.Context, *project, thread.ID) error,
) error {
	return withProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		id, err := completeID(ctx, p, prefix)
		if err != nil {
			return err
		}
		return do(ctx, p, id)
	})
}

// completeID finds the one thread whose id is or begins with what was given.
func completeID(ctx context.Context, p *project, given string) (thread.ID, error) {
	if _, err := thread.ParseID(given); err != nil {
		return "", &usageError{message: err.Error(), try: "rye-mcp threads list"}
	}
	if _, err := p.store.Get(ctx, thread.ID(given)); err == nil {
		return thread.ID(given), nil
	}
	found, err := idsWithPrefix(ctx, p, given)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", tool.Faultf(tool.CodeNotFound, "no thread %q in this project", given).WithHint("rye-mcp threads list")
	case len(found) == 1:
		return thread.ID(found[0]), nil
	default:
		return "", tool.Faultf(tool.CodeAmbiguous, "%q begins the id of several threads", given).
			WithHint("one of %s", strings.Join(found, ", "))
	}
}

// idsWithPrefix finds the newest threads whose id begins so. It stops at a
// handful, as none or one is what the caller hopes for.
func idsWithPrefix(ctx context.Context, p *project, prefix string) ([]string, error) {
	const handful = 5
	var found []string
	req := control.ListRequest{Text: prefix, Limit: maxListed}
	for {
		list, err := p.control.List(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, t := range list.Threads {
			if strings.HasPrefix(string(t.ThreadID), prefix) {
				found = append(found, string(t.ThreadID))
			}
			if len(found) == handful {
				return found, nil
			}
		}
		if req.Cursor = list.NextCursor; req.Cursor == "" {
			return found, nil
		}
	}
}

// tailOnce writes the last events of a transcript. A thread that has written
// nothing yet has none.
func tailOnce(sys System, p *project, id thread.ID, events int) error {
	page, err := transcript.Tail(p.control.TranscriptPath(id), transcript.TailOptions{
		Last: events, MaxBytes: 1 << 20, Text: true,
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(sys.Stdout, page.Content)
	return err
}

// tailLive streams a transcript until its thread ends; an interrupt ends the
// looking, not the thread.
func tailLive(ctx context.Context, sys System, p *project, id thread.ID) error {
	out := &streamer{out: sys.Stdout, err: sys.Stderr}
	over := make(chan struct{})
	streamed := make(chan error, 1)
	go func() { streamed <- follow(context.WithoutCancel(ctx), p.control.TranscriptPath(id), over, out.see) }()
	_, err := p.control.Wait(ctx, control.WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: 1<<63 - 1})
	close(over)
	return errors.Join(err, <-streamed)
}
