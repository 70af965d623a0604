package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

func newMemoryExportCommand(sys System, opts *options) *cobra.Command {
	var (
		kinds  []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write entries and their history as Markdown, or JSON",
		Long: `Write entries and their history as Markdown, which "rye-mcp memory import" reads, to a
new file or to standard output. Read it before you give it to others.`,
		Example: `  rye-mcp memory export notes.md
  rye-mcp memory export --kind decision > decisions.md`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			wanted, err := kindsOf(kinds)
			if err != nil {
				return err
			}
			return withEntries(cmd.Context(), sys, *opts, func(ctx context.Context, p *project, b *remembered.Book) error {
				all, err := b.Export(ctx, wanted)
				if err == nil {
					err = tellDamaged(sys, all.Refused)
				}
				if err != nil {
					return err
				}
				var out bytes.Buffer
				if asJSON {
					err = writeJSON(&out, entryListOf(all))
				} else {
					err = remembered.WriteMarkdown(&out, "What threads of "+filepath.Base(p.path)+" remember", all.Entries)
				}
				if err != nil {
					return err
				}
				return writeNewFile(sys, args, out.Bytes(), len(all.Entries))
			})
		}),
	}
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only entries of this kind; repeat for more")
	completeFlag(cmd, "kind", kindNames(memtools.Kinds()))
	jsonFlag(cmd, &asJSON)
	return cmd
}

// writeNewFile writes to a file that is not there yet, or to standard output.
func writeNewFile(sys System, args []string, data []byte, entries int) error {
	if len(args) == 0 || args[0] == "-" {
		_, err := sys.Stdout.Write(data)
		return err
	}
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the person names it
	if errors.Is(err, fs.ErrExist) {
		return &usageError{message: args[0] + " is there already", try: "another name, or rye-mcp memory export > " + args[0]}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(sys.Stderr, "%d %s in %s\n", entries, verb(entries, "entry", "entries"), args[0])
	return err
}

func newMemoryImportCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take in entries of a Markdown file",
		Long: `Take in entries of a Markdown file, - for standard input: each begins with a line
"## kind: title". One with the key of an entry that there is changes that; the others are
added. What you import later threads are told, so read it first. An entry without a
comment about it counts as yours; one that somebody else wrote is recalled as unverified.`,
		Example: `  rye-mcp memory import notes.md`,
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			data, err := readFileOrInput(sys, args[0])
			if err != nil {
				return err
			}
			parsed, err := remembered.ParseMarkdown(data)
			if err != nil {
				return fmt.Errorf("%s: %w; nothing was imported", args[0], err)
			}
			return withOwnEntries(cmd.Context(), sys, *opts, func(ctx context.Context, _ *project, b *remembered.Book) error {
				done, err := b.Bring(ctx, parsed)
				if err != nil {
					return fmt.Errorf("%s: %w (before that: %s)", args[0], err, broughtIn(done))
				}
				return conclude(sys, asJSON, done, true, func() error {
					_, err := fmt.Fprintln(sys.Stdout, broughtIn(done))
					return errors.Join(err, tellRemoved(sys, done.Removed))
				})
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func broughtIn(done remembered.Brought) string {
	return fmt.Sprintf("%d added, %d changed, %d unchanged, %d stood already", done.Added, done.Changed, done.Unchanged, done.Folded)
}

func readFileOrInput(sys System, name string) ([]byte, error) {
	if name == "-" {
		return readWithin(sys.Stdin, remembered.MaxFile)
	}
	return readAtMost(name, remembered.MaxFile)
}
