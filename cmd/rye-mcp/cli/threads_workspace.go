package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// newWorkspaces are the workspaces of the threads of a project.
func newWorkspaces(sys System, p *project) *workspace.Local {
	renderings := filepath.ToSlash(filepath.Join(".ai", "knowledge", filepath.FromSlash(item.ThreadRecords))) + "/"
	l := &workspace.Local{
		Project: p.path, User: p.state.finder.User, Seal: func() *place.Seal { return p.state.Home().Seal },
		Environ: slices.Concat(sys.Outer, sys.Environ), Now: sys.Now, Crashpoints: sys.Crashpoints,
		Scratch: scratchFolder(sys),
		LeftOut: func(path string) bool { return strings.HasPrefix(path, renderings) },
	}
	if p.state.site.shared() {
		l.Machine, l.Called = machineOf(p), cmp.Or(p.place.Worker, p.place.Host)
		l.Bundles = func(of thread.ID, name string) ([]byte, error) { return p.records().Of(of).Artifacts().Load(name) }
	}
	return l
}

func newThreadsDiffCommand(sys System, opts *options) *cobra.Command {
	var (
		stat   bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "diff ID [PATH]",
		Short: "Show what a thread changed in its workspace",
		Long: `Show what a thread changed in its workspace since that began, or since it was last
applied: the files, and the difference as git shows it.`,
		Example: `  rye-mcp threads diff latest --stat
  rye-mcp threads diff review-17 src/main.go`,
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) > 1 {
				path = args[1]
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return showChanges(ctx, sys, p, changeset.Request{ThreadID: id, Path: path, Room: cliRoom}, stat, asJSON)
			})
		}),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "only which files, and how many lines")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// cliRoom is how much of a difference a terminal is shown; PATH shows the rest.
const cliRoom = 4 << 20

func showChanges(ctx context.Context, sys System, p *project, r changeset.Request, stat, asJSON bool) error {
	shown, err := p.control.Changed.Diff(ctx, r)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(sys.Stdout, shown)
	}
	var b strings.Builder
	for _, f := range shown.Files {
		fmt.Fprintf(&b, "%s %s%s\n", f.Change, f.Path, aboutFile(f))
	}
	if shown.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", shown.More)
	}
	if !stat && shown.Text != "" {
		b.WriteString("\n" + shown.Text)
	}
	writeNotes(&b, shown)
	_, err = fmt.Fprint(sys.Stdout, b.String())
	return err
}

// aboutFile is what else is known of a changed file.
func aboutFile(f workspace.File) string {
	var about []string
	switch {
	case f.Binary:
		about = append(about, "binary")
	case f.Added+f.Removed > 0:
		about = append(about, fmt.Sprintf("+%d -%d", f.Added, f.Removed))
	}
	if f.Person != "" {
		about = append(about, "asks you: "+f.Person)
	}
	if len(about) == 0 {
		return ""
	}
	return "  (" + strings.Join(about, "; ") + ")"
}

func writeNotes(b *strings.Builder, shown changeset.Shown) {
	if shown.Note != "" {
		fmt.Fprintf(b, "%s\n", shown.Note)
	}
	if shown.WorkspaceOf != "" {
		fmt.Fprintf(b, "it works in the workspace of %s\n", shown.WorkspaceOf)
	}
	if len(shown.Outside) > 0 {
		fmt.Fprintf(b, "changed outside the project, and never applied: %s\n", strings.Join(shown.Outside, ", "))
	}
	if len(shown.Left) > 0 {
		fmt.Fprintf(b, "repositories in it, of which nothing is shown or applied: %s\n", strings.Join(shown.Left, ", "))
	}
	if len(shown.Ignored) > 0 {
		fmt.Fprintf(b, "git ignores, so it is never applied; folders go with the workspace: %s\n", strings.Join(shown.Ignored, ", "))
	}
	if shown.Folder != "" {
		fmt.Fprintf(b, "the files are in %s\n", shown.Folder)
	}
}

// applyFlags are the flags of threads apply.
type applyFlags struct{ yes, protected, json bool }

func newThreadsApplyCommand(sys System, opts *options) *cobra.Command {
	var flags applyFlags
	cmd := &cobra.Command{
		Use:   "apply ID",
		Short: "Put what a thread changed in its workspace into the project",
		Long: `Put what a thread changed in its workspace into the files of the project: all of it,
or nothing and a list of what is in conflict. What has changed on both sides in
different lines is merged. Your index and your commits stay as they are.

It shows the files and asks. Files that other programs obey, items of the project and
links out of it are applied only when you agree to them by name: answer the question,
or give --protected with --yes.`,
		Example: `  rye-mcp threads apply latest
  rye-mcp threads apply review-17 --yes`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return applyChanges(ctx, sys, p, id, flags)
			})
		},
	}
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&flags.protected, "protected", false, "also files that ask for you by name")
	jsonFlag(cmd, &flags.json)
	return cmd
}

func applyChanges(ctx context.Context, sys System, p *project, id thread.ID, flags applyFlags) error {
	if belowThread(sys) {
		flags.protected = false // there is no person who could agree
	}
	r := changeset.Request{ThreadID: id, Room: cliRoom, Protected: flags.protected}
	if !flags.yes {
		agreed, err := agreeToApply(ctx, sys, p, &r)
		if err != nil || !agreed {
			return err
		}
	}
	applied, err := p.control.Changed.Apply(ctx, r)
	if err != nil {
		return conflictsFor(sys, id, err)
	}
	if flags.json {
		return writeJSON(sys.Stdout, applied)
	}
	return tellApplied(sys, applied)
}

// agreeToApply shows the person what would be applied, and asks.
func agreeToApply(ctx context.Context, sys System, p *project, r *changeset.Request) (bool, error) {
	shown, err := p.control.Changed.Diff(ctx, *r)
	if err != nil {
		return false, err
	}
	count := shown.Added + shown.Modified + shown.Deleted
	if count == 0 {
		return true, nil
	}
	var b strings.Builder
	protected := 0
	for _, f := range shown.Files {
		fmt.Fprintf(&b, "%s %s%s\n", f.Change, f.Path, aboutFile(f))
		if f.Person != "" {
			protected++
		}
	}
	if shown.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", shown.More)
	}
	if _, err := fmt.Fprint(sys.Stderr, b.String()); err != nil {
		return false, err
	}
	question, otherwise := fmt.Sprintf("Apply %s to %s?", counted(count, "changed file"), p.path), "rye-mcp threads apply "+string(r.ThreadID)+" --yes"
	if protected > 0 && !belowThread(sys) {
		question = fmt.Sprintf("%d of them %s for you. %s", protected, verb(protected, "asks", "ask"), question)
		otherwise += " --protected"
	}
	agreed, err := confirm(sys, question, otherwise)
	if agreed && shown.More == 0 && !belowThread(sys) {
		r.Protected = true // each was shown by its name
	}
	if err == nil && !agreed {
		_, err = fmt.Fprintln(sys.Stdout, "Nothing was applied.")
	}
	return agreed, err
}

// conflictsFor lists what is in conflict, for a person.
func conflictsFor(sys System, id thread.ID, err error) error {
	f, ok := errors.AsType[*tool.Fault](err)
	conflicts, _ := f.Details["conflicts"].([]workspace.Conflict)
	if !ok || len(conflicts) == 0 {
		return err
	}
	for _, c := range conflicts {
		_, _ = fmt.Fprintf(sys.Stderr, "%s: %s", c.Path, strings.ReplaceAll(c.Kind, "_", " "))
		if c.Why != "" {
			_, _ = fmt.Fprintf(sys.Stderr, " (%s)", c.Why)
		}
		_, _ = fmt.Fprintf(sys.Stderr, "\n%s", c.Hunk)
	}
	try := "change the files here, or: rye-mcp threads resume " + string(id) + ` "solve the conflicts"`
	if f.Code == tool.CodeProtected {
		try = "rye-mcp threads apply " + string(id) + " --yes --protected, after looking at them"
	}
	return &usageError{message: f.Message, try: try}
}

func tellApplied(sys System, a changeset.Applied) error {
	count := a.Count()
	switch {
	case count == 0 && !a.Before.IsZero():
		_, err := fmt.Fprintf(sys.Stdout, "Everything was applied at %s; nothing has changed since.\n", a.Before.Local().Format(time.DateTime))
		return err
	case count == 0:
		_, err := fmt.Fprintln(sys.Stdout, cmp.Or(a.Note, "nothing has changed in the workspace"))
		return err
	}
	text := fmt.Sprintf("Applied: %d added, %d modified, %d deleted.\n", a.Added, a.Modified, a.Deleted)
	if len(a.Merged) > 0 {
		text += "Merged with what changed here: " + strings.Join(a.Merged, ", ") + ".\n"
	}
	if len(a.Ignored) > 0 {
		text += "Not applied, as git ignores it: " + strings.Join(a.Ignored, ", ") + ".\n"
	}
	if a.Note != "" {
		text += a.Note + "\n"
	}
	_, err := fmt.Fprint(sys.Stdout, text)
	return err
}
