package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newSignCommand(sys System, opts *options) *cobra.Command {
	var (
		kind   string
		accept []string
		renew  renewFlags
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "sign ITEM|PATH|GLOB...",
		Short: "Check items and sign them with your key",
		Long: `Check items of the project and the user space and sign them with your key, which
"rye-mcp keys generate" makes. Read them before: signed items are executed. What
does not parse is not signed, and items of the system space cannot be.

An item is named by its id, by a pattern of ids (* within one folder, ** across
folders; put it in quotes), or by the path of its file: absolute, beginning with
a dot, or with .ai in it. Settings files, which have no id, are named by path.

Agents, commands and skills of Claude Code (claude/agents/NAME and so on) stay as
they are: their signatures stand in .ai/signatures, and what they may do is
printed. --acknowledge accepts the risk of those that run commands.

A signature is for one kind and id. Older ones are for neither, and are not
accepted any more: --renew lists what you have signed before, and signs it anew
after one question. Files that carry one and the same signature under two names
are left for you to read.`,
		Example: `  rye-mcp sign review/security
  rye-mcp sign --type directive 'review/**'
  rye-mcp sign .ai/knowledge/*.md .ai/config/agent/hooks.yaml
  rye-mcp sign --renew`,
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if renew.renew {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		}),
		ValidArgsFunction: completer{sys: sys, opts: opts}.items,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case renew.renew:
				return signAnew(cmd.Context(), sys, *opts, renew, asJSON)
			case renew.yes || len(renew.signers) > 0:
				return &usageError{message: "--yes and --signer belong to --renew", try: "rye-mcp sign --renew"}
			}
			return signItems(cmd.Context(), sys, *opts, action.SignRequest{ItemType: kind, Acknowledge: accept}, args, asJSON)
		},
	}
	cmd.Flags().StringVar(&kind, "type", "", "directive, tool or knowledge (default: whatever has the id)")
	completeFlag(cmd, "type", itemTypes)
	cmd.Flags().StringSliceVar(&accept, "acknowledge", nil, "accept this `risk` of agents, commands and skills of other programs: elevated")
	cmd.Flags().BoolVar(&renew.renew, "renew", false, "sign anew what carries an older signature of yours")
	cmd.Flags().BoolVar(&renew.yes, "yes", false, "with --renew: do not ask")
	cmd.Flags().StringSliceVar(&renew.signers, "signer", nil, "with --renew --yes: also what this trusted key signed, by its `fingerprint`")
	cmd.MarkFlagsMutuallyExclusive("renew", "type")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func signItems(ctx context.Context, sys System, opts options, r action.SignRequest, names []string, asJSON bool) error {
	if len(r.Acknowledge) > 0 {
		if err := mayDecide(sys, "which risk is accepted"); err != nil {
			return err
		}
	}
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	// Signing needs no threads, so no database is opened for it.
	tools, err := unsignedTools(sys, roots, newGate(sys, roots), config.New(roots).Read())
	if err != nil {
		return err
	}
	actions := action.New(action.Deps{
		Resolver: resolve.New(roots), Executor: tools, Now: sys.Now,
		Key: func() (*sign.Key, error) { return sign.Load(roots.User) },
	})
	all := action.SignResult{Success: true, Signed: []action.SignedItem{}, Failed: []action.UnsignedItem{}}
	for _, name := range names {
		name, err := signName(name)
		if err != nil {
			return err
		}
		r.ItemID = name
		one, err := actions.Sign(ctx, action.Caller{}, r)
		switch f := (*tool.Fault)(nil); {
		case err != nil && (len(names) == 1 || !errors.As(err, &f) || f.Code == tool.CodeNoKey || ctx.Err() != nil):
			return signFault(err)
		case err != nil:
			one = &action.SignResult{Failed: []action.UnsignedItem{{Item: name, Error: f.Message, Details: f.Details}}, Total: 1}
		}
		all.Success = all.Success && one.Success
		all.Signed, all.Failed = append(all.Signed, one.Signed...), append(all.Failed, one.Failed...)
		all.Total += one.Total
	}
	return tellSigned(sys, opts, all, asJSON)
}

// signFault says in words of the command line what rye_sign says in its own.
func signFault(err error) error {
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeAmbiguous {
		return f.WithHint("--type says which of them")
	}
	return err
}

// signName makes a path absolute, for it is the working directory that people
// mean, and leaves an id as it is.
func signName(name string) (string, error) {
	if action.IsPath(name) || slices.Contains(strings.Split(filepath.ToSlash(name), "/"), ".ai") {
		return filepath.Abs(name)
	}
	return name, nil
}

func tellSigned(sys System, opts options, r action.SignResult, asJSON bool) error {
	return conclude(sys, asJSON, r, r.Success, func() error { return writeSigned(newDisplay(sys, opts), r) })
}

func writeSigned(d display, r action.SignResult) error {
	var t table
	for _, s := range r.Signed {
		path := s.Path
		if len(s.May) > 0 {
			path += "; it may " + strings.Join(s.May, ", ")
		}
		t.add(cell{"signed", green}, text(string(s.Type)), text(s.Item), text(path))
		for _, note := range s.Notes {
			t.add(cell{"note", yellow}, text(string(s.Type)), text(s.Item), text(note))
		}
	}
	for _, f := range r.Failed {
		t.add(cell{"failed", red}, text(string(f.Type)), text(f.Item), text(f.Error))
	}
	d.width = 0 // reasons and paths are there to be read whole
	return t.write(d)
}
