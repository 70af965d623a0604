package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
)

func newThreadsImportCommand(sys System, opts *options) *cobra.Command {
	var (
		trusted string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take the threads of a recording into this project, to be read",
		Long: `Take the threads of a file of "threads export" into this project: all or none. They
keep their ids, and are listed, shown, read, searched (threads chain --search),
verified, exported and deleted like others. Nothing goes on with them: they are not
resumed, copied or told anything, nobody is charged for them, and no knowledge is made
of what they say.

The file must be signed by you, by a key that you trust (see "keys trust"), or by the
one whose fingerprint --trust names. Everything in it is checked before anything is
written. A thread whose id this project has already is refused, and so is one that had
not ended.`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return importThreads(cmd.Context(), sys, *opts, args[0], trusted, asJSON)
		}),
	}
	cmd.Flags().StringVar(&trusted, "trust", "", "fingerprint of a key whose recording is imported although you do not trust it")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func importThreads(ctx context.Context, sys System, opts options, file, trusted string, asJSON bool) (err error) {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	r, err := openRecording(p, file, trusted)
	if err != nil {
		return err
	}
	owner, _, err := signerOf(p, r.Signer)
	if err != nil {
		return err
	}
	if err := late.Make(ctx, p.store); err != nil {
		return err
	}
	importer := &replay.Importer{Threads: p.control.Threads, Life: p.life, Host: p.place.Host, Now: sys.Now}
	done, err := importer.Import(ctx, r, owner)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(sys.Stdout, done)
	}
	verb := "imported"
	if done.Before {
		verb = "had been imported before"
	}
	for _, id := range done.Threads {
		if _, err := fmt.Fprintf(sys.Stdout, "%s %s, signed by %s\n", id, verb, done.Signer); err != nil {
			return err
		}
	}
	return nil
}
