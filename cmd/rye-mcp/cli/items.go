package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newItemsCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "items",
		Short: "List, show, find, copy and write directives, tools and knowledge",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newItemsListCommand(sys, opts), newItemsShowCommand(sys, opts), newItemsSearchCommand(sys, opts),
		newItemsCopyCommand(sys, opts), newItemsNewCommand(sys, opts),
	)
	return cmd
}

// itemFlags say which items a command is about.
type itemFlags struct {
	kind  string
	space string
	json  bool
}

func (f *itemFlags) add(cmd *cobra.Command, space string) {
	cmd.Flags().StringVar(&f.kind, "type", "", "directive, tool or knowledge")
	completeFlag(cmd, "type", itemTypes)
	cmd.Flags().StringVar(&f.space, "space", "", space)
	completeFlag(cmd, "space", func() []string { return texts(item.Spaces()) })
	jsonFlag(cmd, &f.json)
}

func (f *itemFlags) check() error {
	if f.kind != "" && !slices.Contains(itemTypes(), f.kind) {
		return &usageError{message: fmt.Sprintf("type %q is unknown", f.kind), try: "--type " + strings.Join(itemTypes(), ", ")}
	}
	if f.space != "" && !slices.Contains(texts(item.Spaces()), f.space) {
		return &usageError{message: fmt.Sprintf("space %q is unknown", f.space), try: "--space " + strings.Join(texts(item.Spaces()), ", ")}
	}
	return nil
}

// itemActions are the actions on items, which need neither threads nor a database of
// them. Close ends them.
type itemActions struct {
	*action.Actions
	roots resolve.Roots
	index lazyIndex
}

func newItemActions(ctx context.Context, sys System, opts options) (*itemActions, error) {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return nil, err
	}
	resolver := resolve.New(roots).WithLeft(newLateLeft(ctx, sys, roots.Project))
	a := &itemActions{roots: roots}
	a.index.open = func() (*search.Index, error) { return openIndex(ctx, sys, resolver) }
	a.Actions = action.New(action.Deps{
		Resolver: resolver, Trust: newGate(sys, roots).Once(config.New(roots).Read().Integrity), Now: sys.Now,
		Search: a.index.search,
		Key:    func() (*sign.Key, error) { return sign.Load(roots.User) },
	})
	return a, nil
}

// Close releases the index.
func (a *itemActions) Close() error { return a.index.close() }

// caller is the person at the command line.
func (a *itemActions) caller() action.Caller {
	return action.Caller{Env: tool.Env{Project: a.roots.Project}}
}

// withItems runs a command with the actions on items.
func withItems(ctx context.Context, sys System, opts options, do func(*itemActions) error) error {
	a, err := newItemActions(ctx, sys, opts)
	if err != nil {
		return err
	}
	return errors.Join(signFault(do(a)), a.Close())
}
