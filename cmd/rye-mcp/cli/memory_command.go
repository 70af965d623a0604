package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newMemoryCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Read and change what threads and you have noted for later threads",
		Long: `Read and change what threads and you have noted for later threads of this project:
decisions, discoveries, constraints, workarounds, preferences, and what threads returned.

Memory is off until you switch it on: rye-mcp config set memory enabled true --user`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newMemoryListCommand(sys, opts), newMemoryShowCommand(sys, opts), newMemoryAddCommand(sys, opts), newMemoryEditCommand(sys, opts),
		newMemoryKeepCommand(sys, opts), newMemoryForgetCommand(sys, opts), newMemoryExportCommand(sys, opts), newMemoryImportCommand(sys, opts),
		newMemoryEvalCommand(sys, opts),
	)
	return cmd
}

// whatIsRemembered is what a thread does not decide about in a person's name.
const whatIsRemembered = "what is remembered in the person's name"

// withEntries opens the memory of the project for a command.
func withEntries(ctx context.Context, sys System, opts options, do func(context.Context, *project, *remembered.Book) error) error {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	opened, on, err := p.memory.open()
	if err == nil && !on {
		err = tool.Faultf(tool.CodeUnsupported, "memory is off").WithHint("rye-mcp config set memory enabled true --user")
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	book, err := p.entries(opened, nil)
	if err == nil {
		err = do(ctx, p, book)
	}
	return errors.Join(err, p.Close())
}

// withOwnEntries is withEntries for a command that changes them in the person's name.
func withOwnEntries(ctx context.Context, sys System, opts options, do func(context.Context, *project, *remembered.Book) error) error {
	if err := mayDecide(sys, whatIsRemembered); err != nil {
		return err
	}
	return withEntries(ctx, sys, opts, do)
}

// entryKeys offers the keys of entries.
func (c completer) entryKeys(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	var keys []string
	_ = withEntries(ctx, c.sys, *c.opts, func(ctx context.Context, _ *project, b *remembered.Book) error { // a shell has no place for an error
		page, err := b.List(ctx, memtools.Filter{History: true})
		for _, e := range page.Entries {
			if strings.HasPrefix(e.Key, prefix) && !slices.Contains(args, e.Key) {
				keys = append(keys, cobra.CompletionWithDesc(e.Key, plain.Line(string(e.Kind)+": "+e.Title)))
			}
		}
		return err
	})
	return keys, inOrder
}

func (c completer) oneEntryKey(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, justThese
	}
	return c.entryKeys(cmd, args, prefix)
}

// kindNames are the kinds that a flag takes.
func kindNames(kinds []memtools.Kind) func() []string {
	return func() []string {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = string(k)
		}
		return names
	}
}

func kindsOf(names []string) ([]memtools.Kind, error) {
	kinds := make([]memtools.Kind, len(names))
	for i, name := range names {
		if kinds[i] = memtools.Kind(name); !slices.Contains(memtools.Kinds(), kinds[i]) {
			return nil, &usageError{message: fmt.Sprintf("there is no kind %q", item.Shown(name)), try: "--kind " + strings.Join(kindNames(memtools.Kinds())(), ", --kind ")}
		}
	}
	return kinds, nil
}

func newMemoryListCommand(sys System, opts *options) *cobra.Command {
	var (
		filter memtools.Filter
		kinds  []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "list [WORDS]",
		Short: "List entries, the newest first",
		Long: `List entries, the newest first: all that have all of the words. What was superseded is
left out; --history shows it, too.`,
		Example: `  rye-mcp memory list
  rye-mcp memory list "rate limit" --kind discovery --kind constraint`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: shows(func(cmd *cobra.Command, args []string) (err error) {
			if filter.Kinds, err = kindsOf(kinds); err != nil {
				return err
			}
			filter.Text = strings.Join(args, " ")
			return withEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				page, err := b.List(ctx, filter)
				if err != nil {
					return err
				}
				return conclude(sys, asJSON, entryListOf(page), true, func() error { return writeEntries(sys, newDisplay(sys, *opts), page) })
			})
		}),
	}
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only entries of this `kind`; repeat for more")
	completeFlag(cmd, "kind", kindNames(memtools.Kinds()))
	cmd.Flags().BoolVar(&filter.History, "history", false, "also what was superseded")
	cmd.Flags().BoolVar(&filter.Anywhere, "all-projects", false, "entries of all your projects that are kept in the same file")
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "at most so many (default: all)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// entryListJSON is what memory list writes with --json.
type entryListJSON struct {
	Success bool             `json:"success"`
	Entries []memtools.Entry `json:"entries"`
	Damaged int              `json:"damaged,omitempty"`
}

func entryListOf(page memtools.Listed) entryListJSON {
	return entryListJSON{true, append([]memtools.Entry{}, page.Entries...), page.Refused}
}

func writeEntries(sys System, d display, page memtools.Listed) error {
	if err := tellDamaged(sys, page.Refused); err != nil {
		return err
	}
	if len(page.Entries) == 0 {
		_, err := fmt.Fprintln(sys.Stdout, "no entries")
		return err
	}
	t := table{header: []string{"KEY", "KIND", "WHEN", "BY", "TITLE"}}
	for _, e := range page.Entries {
		kind := cell{text: string(e.Kind)}
		if !e.Current() {
			kind = cell{string(e.Kind) + ", superseded", dim}
		}
		t.add(text(e.Key), kind, text(e.Writer().At.Local().Format(time.DateOnly)), text(saidByOf(e)), text(e.Title))
	}
	return t.write(d)
}

// tellDamaged says that some entries count for nothing.
func tellDamaged(sys System, n int) error {
	if n == 0 {
		return nil
	}
	_, err := fmt.Fprintf(sys.Stderr, "Warning: %d %s not signed by your state key for this project and %s never recalled; rye-mcp memory forget --damaged removes what there is of that\n",
		n, verb(n, "entry is", "entries are"), verb(n, "is", "are"))
	return err
}

// saidByOf says in short who said an entry.
func saidByOf(e memtools.Entry) string {
	by := e.Writer()
	who := string(by.By)
	switch {
	case by.Directive != "":
		who = by.Directive
	case by.From != "":
		who = "file"
	}
	if more := len(e.Origins) - 1; more > 0 {
		who += fmt.Sprintf(" +%d", more)
	}
	return who
}

func newMemoryShowCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "show KEY",
		Short:             "Show an entry, and who said it when",
		Example:           `  rye-mcp memory show 3f9a`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.oneEntryKey,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return withEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				e, err := b.Get(ctx, args[0])
				if err != nil {
					return err
				}
				return conclude(sys, asJSON, e, true, func() error { return writeEntry(sys, e) })
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func writeEntry(sys System, e memtools.Entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s\n\n%s\n\n", e.Key, e.Kind, plain.Line(e.Title), plain.Lines(e.Text))
	for _, o := range e.Origins {
		who := strings.Join(strings.Fields(strings.Join([]string{string(o.By), string(o.Thread), o.Directive, o.From}, " ")), " ")
		fmt.Fprintf(&b, "said by %s, %s\n", plain.Line(who), o.At.Local().Format(time.DateTime))
	}
	if !e.EditedAt.IsZero() {
		fmt.Fprintf(&b, "edited by a person, %s\n", e.EditedAt.Local().Format(time.DateTime))
	}
	if len(e.Supersedes) > 0 {
		fmt.Fprintf(&b, "supersedes %s\n", strings.Join(e.Supersedes, ", "))
	}
	if !e.Current() {
		fmt.Fprintf(&b, "superseded by %s, so it is not recalled\n", e.SupersededBy)
	}
	_, err := fmt.Fprint(sys.Stdout, b.String())
	return err
}
