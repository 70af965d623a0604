package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	remembered "github.com/rye-mcp/rye-mcp/runtime/memory"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
)

func newMemoryExportCommand(sys System, opts *options) *cobra.Command {
	var (
		kinds  []string
		asJSON bool
		out    = outFile{perm: 0o600, example: "notes.md"}
	)
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write entries and their history as Markdown, or JSON",
		Long: `Write entries and their history as Markdown, which "rye-mcp memory import" reads, to a
file or to standard output. A file that has other bytes is replaced with --overwrite
alone. Read it before you give it to others.`,
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
				var made bytes.Buffer
				if asJSON {
					err = writeJSON(&made, entryListOf(all))
				} else {
					err = remembered.WriteMarkdown(&made, "What threads of "+filepath.Base(p.path)+" remember", all.Entries)
				}
				if err != nil {
					return err
				}
				return exportEntries(sys, args, out, made.Bytes(), len(all.Entries))
			})
		}),
	}
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only entries of this `kind`; repeat for more")
	completeFlag(cmd, "kind", kindNames(memtools.Kinds()))
	out.overwriteFlag(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// exportEntries writes to a file, or to standard output.
func exportEntries(sys System, args []string, out outFile, data []byte, entries int) error {
	if len(args) == 0 || args[0] == "-" {
		_, err := sys.Stdout.Write(data)
		return err
	}
	out.name = args[0]
	if err := out.write(data); err != nil {
		return err
	}
	_, err := fmt.Fprintf(sys.Stderr, "%d %s in %s\n", entries, verb(entries, "entry", "entries"), args[0])
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
