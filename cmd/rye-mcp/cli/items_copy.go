package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// itemCopyJSON is what items copy writes with --json.
type itemCopyJSON struct {
	Success  bool       `json:"success"`
	ItemType item.Kind  `json:"item_type"`
	ItemID   string     `json:"item_id"`
	Space    item.Space `json:"space"` // it was copied from
	CopiedTo string     `json:"copied_to"`
	Replaced string     `json:"replaced,omitempty"`
	Next     string     `json:"next,omitempty"`
}

func newItemsCopyCommand(sys System, opts *options) *cobra.Command {
	var (
		flags     itemFlags
		to        string
		overwrite bool
	)
	cmd := &cobra.Command{
		Use:   "copy ITEM --to project|user",
		Short: "Copy an item into the project or the user space",
		Long: `Copy an item, under the same id, into the project or the user space, where it hides
the one that was copied: to change it, or to share it. A signature goes with the
copy. What stands there is replaced with --overwrite only, and kept beside it.`,
		Example: `  rye-mcp items copy rye/agent/core/base --to project
  rye-mcp items copy review/security --to user --overwrite`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyItem,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			if !slices.Contains(writableSpaces(), to) {
				return &usageError{message: "--to is project or user", try: "rye-mcp items copy " + args[0] + " --to project"}
			}
			return copyItem(cmd.Context(), sys, *opts, action.FetchRequest{
				ItemType: flags.kind, ItemID: args[0], Source: flags.space, Destination: to, Overwrite: overwrite,
			}, flags.json)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "project or user")
	completeFlag(cmd, "to", writableSpaces)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace what stands there; it is kept")
	flags.add(cmd, "of this space, not the first that has the id")
	return cmd
}

// writableSpaces are the spaces that items can be written to.
func writableSpaces() []string { return []string{string(item.Project), string(item.User)} }

func copyItem(ctx context.Context, sys System, opts options, r action.FetchRequest, asJSON bool) error {
	return withItems(ctx, sys, opts, func(a *itemActions) error {
		found, err := a.whole(ctx, r)
		if err != nil {
			return overwriteFault(err)
		}
		done := itemCopyJSON{
			Success: true, ItemType: found.ItemType, ItemID: found.ItemID, Space: found.Space,
			CopiedTo: found.CopiedTo, Replaced: found.Replaced, Next: found.Next,
		}
		if found.SignNext {
			done.Next = fmt.Sprintf("The copy is not executed before it is signed: rye-mcp sign --type %s %s", found.ItemType, found.ItemID)
		}
		return conclude(sys, asJSON, done, true, func() error { return writeCopied(sys, done) })
	})
}

// overwriteFault names the flag for what a model is told to give.
func overwriteFault(err error) error {
	f, ok := errors.AsType[*tool.Fault](err)
	switch {
	case !ok:
	case f.Hint == action.OverwriteHint:
		return f.WithTry("--overwrite, which keeps it beside the copy")
	case f.Hint == action.SourceHint:
		return f.WithTry("--space user or --space system copies the item of another space")
	}
	return err
}

func writeCopied(sys System, done itemCopyJSON) error {
	_, err := fmt.Fprintf(sys.Stdout, "copied  %s\n", plain.Line(done.CopiedTo))
	if done.Replaced != "" && err == nil {
		_, err = fmt.Fprintf(sys.Stdout, "kept    %s\n", plain.Line(done.Replaced))
	}
	if done.Next != "" && err == nil {
		_, err = fmt.Fprintf(sys.Stdout, "\n%s\n", plain.Line(done.Next))
	}
	return err
}
