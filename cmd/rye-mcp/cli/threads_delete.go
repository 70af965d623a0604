package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// deleting is what a command that deletes threads was told.
type deleting struct {
	dryRun, yes, force, asJSON bool
}

func (d *deleting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&d.dryRun, "dry-run", false, "show what would be deleted, and delete nothing")
	cmd.Flags().BoolVarP(&d.yes, "yes", "y", false, "do not ask")
	jsonFlag(cmd, &d.asJSON)
}

func newThreadsDeleteCommand(sys System, opts *options) *cobra.Command {
	var how deleting
	cmd := &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete threads for ever, with their chains and all below them",
		Long: `Delete threads for ever, with their chains and all below them: rows, folders,
renderings and search entries. What they have spent stays in the sums. You are
shown what goes and asked; --yes does not ask. A thread that has not ended stays,
unless --force stops it first.`,
		Example: `  rye-mcp threads delete latest --dry-run
  rye-mcp threads delete review-1772357400 --yes`,
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return withThreads(cmd.Context(), sys, *opts, args, func(ctx context.Context, p *project, ids []thread.ID) error {
				return deleteThreads(ctx, sys, *opts, p, ids, how)
			})
		}),
	}
	cmd.Flags().BoolVar(&how.force, "force", false, "stop what has not ended first, and delete what something speaks against")
	how.flags(cmd)
	return cmd
}

// deleteThreads shows what goes with each thread, asks once, and deletes what was shown.
func deleteThreads(ctx context.Context, sys System, opts options, p *project, ids []thread.ID, how deleting) error {
	shown := make([]tidy.Deleted, len(ids))
	for i, id := range ids {
		var err error
		if shown[i], err = p.control.Tidy.Delete(ctx, tidy.DeleteRequest{ThreadID: id, DryRun: true, Force: how.force}); err != nil {
			return err
		}
	}
	if how.dryRun || !how.yes {
		if err := tellDeleted(sys, opts, shown, how.asJSON && how.dryRun); err != nil || how.dryRun {
			return err
		}
		yes, err := confirm(sys, fmt.Sprintf("\nDelete %s for ever?", goingThreads(shown)), "--yes deletes them, --dry-run shows them")
		if err != nil || !yes {
			return left(sys, err)
		}
	}
	line := startProgress(sys, "deleting "+goingThreads(shown))
	var errs []error
	for i, id := range ids {
		told, err := p.control.Tidy.Delete(ctx, tidy.DeleteRequest{
			ThreadID: id, Force: how.force, Agreed: true, Digest: digestOf(shown[i], how.yes), Progress: howFarDeleted(line),
		})
		shown[i] = told
		errs = append(errs, err)
	}
	line.end()
	return errors.Join(tellDone(sys, shown, how.asJSON), errors.Join(errs...))
}

// digestOf is what a person has agreed to; empty: to whatever there is by then.
func digestOf(shown tidy.Deleted, yes bool) string {
	if yes {
		return ""
	}
	return shown.Digest()
}

// left says that nothing was done, to a person who has said no or cannot be asked.
func left(sys System, err error) error {
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(sys.Stderr, "Nothing was deleted.")
	return err
}

func howFarDeleted(line *progress) func(tidy.Progress) {
	return func(p tidy.Progress) { line.say("deleting: %d of %d", p.Done, p.Total) }
}

// goingThreads counts the threads that go.
func goingThreads(shown []tidy.Deleted) string {
	n := 0
	for _, d := range shown {
		n += d.Threads
	}
	return counted(n, "thread")
}

// tellDeleted shows what would go.
func tellDeleted(sys System, opts options, shown []tidy.Deleted, asJSON bool) error {
	if asJSON {
		return eachJSON(sys, shown)
	}
	t := table{header: []string{"THREAD", "GOES WITH", "SIZE", "SPENT", ""}}
	for _, d := range shown {
		note := ""
		switch {
		case len(d.Living) > 0:
			note = fmt.Sprintf("%s not ended", counted(len(d.Living), "thread"))
		case d.Blocked != "":
			note = d.Blocked
		}
		note = strings.Join(slices.DeleteFunc(append([]string{note}, d.With...), func(s string) bool { return s == "" }), "; ")
		t.add(text(string(d.ThreadID)), text(counted(d.Threads-1, "other")), text(sizeOf(d.Bytes)), text(d.Spend.String()), text(note))
	}
	return t.write(newDisplay(sys, opts))
}

// tellDone says what is gone.
func tellDone(sys System, done []tidy.Deleted, asJSON bool) error {
	if asJSON {
		return eachJSON(sys, done)
	}
	var errs []error
	for _, d := range done {
		switch {
		case d.ThreadID == "": // its error is told instead
		case d.DeletedAt != "":
			_, err := fmt.Fprintf(sys.Stdout, "%s was deleted on %s\n", d.ThreadID, d.DeletedAt)
			errs = append(errs, err)
		case d.DryRun:
			errs = append(errs, fmt.Errorf("%s: %s", d.ThreadID, d.Next))
		default:
			_, err := fmt.Fprintf(sys.Stdout, "deleted %s: %s, %s\n", d.ThreadID, counted(d.Threads, "thread"), sizeOf(d.Bytes))
			errs = append(errs, err, tellLeft(sys, d.Kept))
		}
	}
	return errors.Join(errs...)
}

func tellLeft(sys System, kept []string) error {
	if len(kept) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(sys.Stderr, "Warning: something is left, which the next deletion or a server removes: %s\n", strings.Join(kept, "; "))
	return err
}

func eachJSON[T any](sys System, list []T) error {
	for _, v := range list {
		if err := writeJSON(sys.Stdout, v); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf is a number of bytes for people.
func sizeOf(bytes int64) string {
	const k = 1024
	switch {
	case bytes < k:
		return counted(int(bytes), "byte")
	case bytes < 10*k*k:
		return fmt.Sprintf("%.0f KiB", float64(bytes)/k)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(k*k))
}
