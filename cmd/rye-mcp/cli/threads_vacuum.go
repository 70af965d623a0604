package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newThreadsVacuumCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "vacuum",
		Short: "Make databases, search index and memory as small as they can be",
		Long: `Make registry, ledger, search index and memory as small as they can be: what deleted threads
have left is given back to the operating system. Threads go on meanwhile.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			return withProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
				return vacuum(ctx, sys, *opts, p, asJSON)
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func vacuum(ctx context.Context, sys System, opts options, p *project, asJSON bool) error {
	line := startProgress(sys, "giving room back")
	done, err := p.control.Tidy.Vacuum(ctx)
	line.end()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(sys.Stdout, done)
	}
	t := table{header: []string{"", "BEFORE", "AFTER", ""}}
	for _, part := range done.Parts {
		t.add(text(part.Name), text(sizeOf(part.Before)), text(sizeOf(part.After)), text(part.Kept))
	}
	t.add(text("all"), text(sizeOf(done.Before)), text(sizeOf(done.After)), text(""))
	return t.write(newDisplay(sys, opts))
}
