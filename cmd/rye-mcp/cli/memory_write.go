package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

// person is who writes at the command line.
func person() memtools.Writer { return memtools.Writer{By: memtools.ByPerson} }

func newMemoryAddCommand(sys System, opts *options) *cobra.Command {
	var (
		kind   string
		n      memtools.New
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "add TITLE [TEXT]",
		Short: "Note something for later threads",
		Long: fmt.Sprintf(`Note something for later threads: a title of at most %d characters and a text of at
most %d. Without TEXT, or with -, the text is read from standard input. What says the
same as an entry that there is, in the same words, becomes part of that one.`, remembered.MaxTitle, remembered.MaxText),
		Example: `  rye-mcp memory add --kind constraint "Node 20" "Production runs Node 20; nothing newer is available there."
  rye-mcp memory add --kind decision "Ids are UUIDs" - --supersedes 3f9a < why.txt`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			n.Kind, n.Title = memtools.Kind(kind), args[0]
			if err := kindGiven(n.Kind); err != nil {
				return err
			}
			var err error
			if n.Text, err = textOf(sys, args[1:]); err != nil {
				return err
			}
			return withOwnEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				if n.Supersedes, err = wholeKeys(ctx, b, n.Supersedes); err != nil {
					return err
				}
				wrote, err := b.Write(ctx, person(), n)
				if err != nil {
					return err
				}
				return conclude(sys, asJSON, wrote, true, func() error { return tellWrote(sys, "noted", wrote) })
			})
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "decision, discovery, constraint, workaround or preference")
	completeFlag(cmd, "kind", kindNames(memtools.Written()))
	cmd.Flags().StringSliceVar(&n.Supersedes, "supersedes", nil, "`key` of an entry that no longer holds; repeat for more")
	completeWith(cmd, "supersedes", completer{sys: sys, opts: opts}.entryKeys)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// kindGiven refuses what is no kind before anything is read.
func kindGiven(k memtools.Kind) error {
	valid := strings.Join(kindNames(memtools.Written())(), ", ")
	try := `rye-mcp memory add --kind decision "TITLE" "TEXT"`
	switch {
	case k == "":
		return &usageError{message: "--kind is needed: one of " + valid, try: try}
	case !slices.Contains(memtools.Written(), k):
		return &usageError{message: fmt.Sprintf("--kind: there is no kind %.40q; valid are %s", string(k), valid), try: try}
	}
	return nil
}

// textOf is the text of an argument, or of standard input.
func textOf(sys System, args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	if len(args) == 0 && onTerminal(sys.Stdin) {
		return "", &usageError{message: "the text is missing", try: `rye-mcp memory add --kind decision "TITLE" "TEXT"`}
	}
	data, err := readWithin(sys.Stdin, remembered.MaxFile)
	return string(data), err
}

// readWithin reads what has at most so many bytes.
func readWithin(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("there is more than %s to read", sizeOf(most))
	}
	return data, err
}

// wholeKeys are keys that may be shortened, as they are.
func wholeKeys(ctx context.Context, b *remembered.Book, given []string) ([]string, error) {
	keys := make([]string, len(given))
	for i, key := range given {
		e, err := b.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		keys[i] = e.Key
	}
	return keys, nil
}

// tellWrote says what became of an entry.
func tellWrote(sys System, done string, w memtools.Wrote) error {
	line := done + " as " + w.Key
	if w.Folded {
		line = "stands already: " + w.Key
	}
	if len(w.Superseded) > 0 {
		line += ", in the place of " + strings.Join(w.Superseded, ", ")
	}
	if w.Folded {
		line += fmt.Sprintf("\n\n%s\n\nif yours says something else: --supersedes %s", plain.Lines(w.Existing), w.Key)
	}
	_, err := fmt.Fprintln(sys.Stdout, line)
	return errors.Join(err, tellRemoved(sys, w.Removed), tellNear(sys, w.Near), tellNote(sys, w))
}

// tellNear names an entry that may be the same fact, or contradict it.
func tellNear(sys System, key string) error {
	if key == "" {
		return nil
	}
	_, err := fmt.Fprintf(sys.Stderr, "Warning: %s says nearly the same, or the opposite, and both stand; if yours takes its place, add it again with --supersedes %[1]s\n", key)
	return err
}

func tellRemoved(sys System, n int) error {
	if n == 0 {
		return nil
	}
	_, err := fmt.Fprintf(sys.Stderr, "Warning: %s that looked like a secret %s taken out\n", counted(n, "text"), verb(n, "was", "were"))
	return err
}

func tellNote(sys System, w memtools.Wrote) error {
	if w.Note == "" || w.Folded {
		return nil
	}
	_, err := fmt.Fprintf(sys.Stderr, "Warning: %s\n", plain.Line(w.Note))
	return err
}

func newMemoryEditCommand(sys System, opts *options) *cobra.Command {
	var (
		kind, title, body string
		asJSON            bool
	)
	cmd := &cobra.Command{
		Use:   "edit KEY",
		Short: "Change an entry; it is signed again",
		Long: `Change an entry, in your editor ($VISUAL, $EDITOR) or by flags. It keeps its key, and
who said it.`,
		Example: `  rye-mcp memory edit 3f9a
  rye-mcp memory edit 3f9a --title "Ids are UUIDs, version 7"`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.oneEntryKey,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			var change remembered.Change
			flags := cmd.Flags()
			if flags.Changed("kind") {
				k := memtools.Kind(kind)
				change.Kind = &k
			}
			if flags.Changed("title") {
				change.Title = &title
			}
			if flags.Changed("text") {
				change.Text = &body
			}
			return withOwnEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				return editEntry(ctx, sys, b, args[0], change, asJSON)
			})
		}),
	}
	cmd.Flags().StringVar(&kind, "kind", "", "another kind")
	completeFlag(cmd, "kind", kindNames(memtools.Written()))
	cmd.Flags().StringVar(&title, "title", "", "another title")
	cmd.Flags().StringVar(&body, "text", "", "another text")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func editEntry(ctx context.Context, sys System, b *remembered.Book, key string, change remembered.Change, asJSON bool) error {
	e, err := b.Get(ctx, key)
	if err != nil {
		return err
	}
	if change == (remembered.Change{}) {
		if change, err = editedEntry(ctx, sys, e); err != nil {
			return err
		}
	}
	if change == (remembered.Change{}) {
		return conclude(sys, asJSON, memtools.Wrote{Key: e.Key}, true, func() error {
			_, err := fmt.Fprintln(sys.Stdout, "nothing was changed")
			return err
		})
	}
	wrote, err := b.Edit(ctx, e.Key, change)
	if err != nil {
		return err
	}
	return conclude(sys, asJSON, wrote, true, func() error { return tellWrote(sys, "changed and signed", wrote) })
}

// editedEntry is what the person makes of an entry in an editor.
func editedEntry(ctx context.Context, sys System, e memtools.Entry) (change remembered.Change, err error) {
	var before bytes.Buffer
	if err := remembered.WriteMarkdown(&before, "Change kind, title and text below", []memtools.Entry{e}); err != nil {
		return change, err
	}
	after, file, err := editText(ctx, sys, before.Bytes(), "entry.md", "rye-mcp memory edit "+e.Key+" --title TITLE --text TEXT")
	if err != nil {
		return change, err
	}
	parsed, err := remembered.ParseMarkdown(after)
	if err == nil && len(parsed) != 1 {
		err = fmt.Errorf("there are %d entries, and one was to be edited", len(parsed))
	}
	if err != nil {
		return change, fmt.Errorf("%s: %w; nothing was changed", file, err)
	}
	now := parsed[0]
	if now.Kind != e.Kind {
		change.Kind = &now.Kind
	}
	if now.Title != e.Title {
		change.Title = &now.Title
	}
	if now.Text != e.Text {
		change.Text = &now.Text
	}
	return change, nil
}

func newMemoryKeepCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keep KEY...",
		Short: "Make entries yours, so that they outlive the threads that wrote them",
		Long: `Make entries yours: they stay when the threads that wrote them are deleted, threads can
no longer supersede or forget them, and they are recalled as a person's.`,
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.entryKeys,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return withOwnEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				for _, given := range args {
					e, err := b.Get(ctx, given)
					if err == nil {
						err = b.Keep(ctx, e.Key)
					}
					if err == nil {
						_, err = fmt.Fprintf(sys.Stdout, "%s is yours: %s\n", e.Key, plain.Line(e.Title))
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
	return cmd
}

// forgetting is what memory forget was told.
type forgetting struct{ yes, damaged, asJSON bool }

func newMemoryForgetCommand(sys System, opts *options) *cobra.Command {
	var how forgetting
	cmd := &cobra.Command{
		Use:   "forget KEY...",
		Short: "Delete entries for ever",
		Long: `Delete entries for ever. What an entry has superseded holds again. You are shown what
goes and asked; --yes does not ask. --damaged removes what is not signed by your state
key for this project, and is never recalled.`,
		Example: `  rye-mcp memory forget 3f9a 07be
  rye-mcp memory forget --damaged`,
		Args:              usageArgs(cobra.ArbitraryArgs),
		ValidArgsFunction: completer{sys: sys, opts: opts}.entryKeys,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if how.damaged == (len(args) > 0) {
				return &usageError{message: "name entries, or --damaged", try: "rye-mcp memory list"}
			}
			return withOwnEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				if how.damaged {
					return forgetDamaged(ctx, sys, b, how)
				}
				return forgetEntries(ctx, sys, *opts, b, args, how)
			})
		}),
	}
	cmd.Flags().BoolVarP(&how.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&how.damaged, "damaged", false, "remove what nobody vouches for")
	jsonFlag(cmd, &how.asJSON)
	return cmd
}

func forgetEntries(ctx context.Context, sys System, opts options, b *remembered.Book, given []string, how forgetting) error {
	var going memtools.Listed
	for _, key := range given {
		e, err := b.Get(ctx, key)
		if err != nil {
			return err
		}
		going.Entries = append(going.Entries, e)
	}
	if !how.yes {
		if err := writeEntries(sys, newDisplay(sys, opts), going); err != nil {
			return err
		}
		yes, err := confirm(sys, fmt.Sprintf("\nDelete %d %s for ever?", len(given), verb(len(given), "entry", "entries")), "--yes deletes them")
		if err != nil || !yes {
			return left(sys, err)
		}
	}
	done := make([]memtools.Forgotten, len(going.Entries))
	for i, e := range going.Entries {
		var err error
		if done[i], err = b.Forget(ctx, person(), e.Key); err != nil {
			return err
		}
	}
	return conclude(sys, how.asJSON, done, true, func() error { return tellForgotten(sys, done) })
}

func tellForgotten(sys System, done []memtools.Forgotten) error {
	for _, f := range done {
		line := "deleted " + f.Key
		if len(f.Revived) > 0 {
			line += "; what it had superseded holds again: " + strings.Join(f.Revived, ", ")
		}
		if _, err := fmt.Fprintln(sys.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func forgetDamaged(ctx context.Context, sys System, b *remembered.Book, how forgetting) error {
	damaged, err := b.Damaged(ctx)
	if err != nil {
		return err
	}
	n := len(damaged)
	if n > 0 && !how.yes {
		yes, err := confirm(sys, fmt.Sprintf("Delete %d %s that nobody vouches for?", n, verb(n, "entry", "entries")), "--yes deletes them")
		if err != nil || !yes {
			return left(sys, err)
		}
	}
	if n > 0 {
		if n, err = b.ForgetDamaged(ctx); err != nil {
			return err
		}
	}
	return conclude(sys, how.asJSON, map[string]any{"success": true, "removed": n}, true, func() error {
		_, err := fmt.Fprintf(sys.Stdout, "removed %d %s\n", n, verb(n, "entry", "entries"))
		return err
	})
}
