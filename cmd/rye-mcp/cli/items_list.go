package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// itemListJSON is what items list writes with --json.
type itemListJSON struct {
	Success bool            `json:"success"`
	Total   int             `json:"total"`
	Items   []action.Listed `json:"items"`
}

func newItemsListCommand(sys System, opts *options) *cobra.Command {
	var (
		flags itemFlags
		all   bool
	)
	cmd := &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List directives, tools and knowledge with what their signatures are worth",
		Long: `List the items of project, user and system space, with what their signatures are
worth. A pattern of ids names some of them: * stands for anything within one
folder, ** across folders; put it in quotes. What another item hides and the
records of threads are left out; --all lists them, too.`,
		Example: `  rye-mcp items list
  rye-mcp items list 'review/**' --type directive
  rye-mcp items list --space project --json`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			request := action.ListRequest{Shadowed: all, Threads: all}
			if len(args) > 0 {
				request.Pattern = args[0]
			}
			if flags.kind != "" {
				request.Kinds = []item.Kind{item.Kind(flags.kind)}
			}
			if flags.space != "" {
				request.Spaces = []item.Space{item.Space(flags.space)}
			}
			return listItems(cmd.Context(), sys, *opts, request, flags.json)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also what is hidden by another item, and the records of threads")
	flags.add(cmd, "only this space: project, user or system")
	return cmd
}

func listItems(ctx context.Context, sys System, opts options, request action.ListRequest, asJSON bool) error {
	return withItems(ctx, sys, opts, func(a *itemActions) error {
		line := startProgress(sys, "looking")
		items, err := a.List(ctx, request)
		line.end()
		if err != nil {
			return err
		}
		return conclude(sys, asJSON, itemListJSON{true, len(items), items}, true, func() error { return writeItems(newDisplay(sys, opts), items) })
	})
}

func writeItems(d display, items []action.Listed) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(d.out, "no items")
		return err
	}
	t := table{header: []string{"TYPE", "ID", "SPACE", "SIGNATURE", "DESCRIPTION"}}
	for _, i := range items {
		space := string(i.Space)
		if i.ShadowedBy != "" {
			space += ", hidden by " + string(i.ShadowedBy)
		}
		t.add(text(string(i.Type)), text(i.ID), text(space), cell{string(i.Signature), signatureColor(i.Signature)}, text(cmp.Or(i.Error, i.Description)))
	}
	return t.write(d)
}

// signatureColor is green for what is executed.
func signatureColor(s trust.Status) color {
	if s.Good() {
		return green
	}
	return yellow
}
