package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/verify"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

type verifyFlags struct {
	all        bool
	receipt    string
	transcript string
	key        string
	json       bool
}

func newThreadsVerifyCommand(sys System, opts *options) *cobra.Command {
	var flags verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [ID...]",
		Short: "Check that nobody has changed what threads left on disk",
		Long: `Check what threads left on disk against its signatures and the registry:
thread.json, transcript, capabilities, knowledge entry, large results and, of one
that has ended, what the ledger says that it has spent. What does not verify is
named, with the first turn that cannot be trusted.

With --receipt a receipt of "threads receipt" is checked instead, and with
--transcript a copy of the transcript against it, which may be the compressed
one, transcript.jsonl.zst; neither needs the project. The receipt must be signed
by you, by somebody you trust (see "keys trust"), or by the key in the file that
--key names.

Exit code 0 when everything verifies, 1 when something does not.`,
		Example: `  rye-mcp threads verify --all
  rye-mcp threads verify --receipt review.json --transcript transcript.jsonl --key ada.pem`,
		ValidArgsFunction: completer{sys: sys, opts: opts}.threads,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if err := flags.check(args); err != nil {
				return err
			}
			if flags.receipt != "" {
				return verifyReceipt(sys, *opts, flags)
			}
			return verifyThreads(cmd.Context(), sys, *opts, args, flags)
		}),
	}
	cmd.Flags().BoolVar(&flags.all, "all", false, "every thread of the project")
	cmd.Flags().StringVar(&flags.receipt, "receipt", "", "check this receipt")
	cmd.Flags().StringVar(&flags.transcript, "transcript", "", "with --receipt: the transcript it is about")
	cmd.Flags().StringVar(&flags.key, "key", "", "with --receipt: file with the public key that must have signed it")
	jsonFlag(cmd, &flags.json)
	return cmd
}

// check refuses combinations that make no sense.
func (f verifyFlags) check(args []string) error {
	named := 0
	for _, given := range []bool{len(args) > 0, f.all, f.receipt != ""} {
		if given {
			named++
		}
	}
	switch {
	case named != 1:
		return &usageError{message: "name threads, or give --all, or --receipt", try: "rye-mcp threads verify --all"}
	case f.receipt == "" && (f.transcript != "" || f.key != ""):
		return &usageError{message: "--transcript and --key go with --receipt", try: "rye-mcp threads verify --receipt FILE"}
	}
	return nil
}

func verifyThreads(ctx context.Context, sys System, opts options, args []string, flags verifyFlags) error {
	result := verify.Verification{Success: true, Threads: []verify.Verdict{}}
	var err error
	if flags.all {
		err = withProject(ctx, sys, opts, func(ctx context.Context, p *project) (err error) {
			line := startProgress(sys, "verifying threads")
			defer line.end()
			result, err = p.control.Verify.CheckAll(ctx, func(done int) { line.say("%s verified", counted(done, "thread")) })
			return err
		})
		if errors.Is(err, errNoThreads) {
			err = nil
		}
	} else {
		err = withThreads(ctx, sys, opts, args, func(ctx context.Context, p *project, ids []thread.ID) (err error) {
			result, err = p.control.Verify.Check(ctx, ids)
			return err
		})
	}
	if err != nil {
		return err
	}
	return conclude(sys, flags.json, result, result.Success, func() error {
		return writeVerification(newDisplay(sys, opts), result)
	})
}

func writeVerification(d display, v verify.Verification) error {
	if len(v.Threads) == 0 {
		_, err := fmt.Fprintln(d.out, "no threads in this project yet")
		return err
	}
	t := table{header: []string{"THREAD", "VERDICT", "FILE", "DETAIL"}}
	for _, verdict := range v.Threads {
		addVerdict(&t, verdict)
	}
	return t.write(d)
}

func addVerdict(t *table, v verify.Verdict) {
	id := text(string(v.ThreadID))
	for _, f := range v.Findings {
		detail := f.Detail
		if f.Turn > 0 {
			detail = fmt.Sprintf("from turn %d on: %s", f.Turn, f.Detail)
		}
		t.add(id, cell{string(f.Damage), red}, text(f.File), text(detail))
	}
	if v.Verified {
		t.add(id, cell{"verified", green}, text(""), text(coveredText(v)))
	}
	for _, warning := range v.Warnings {
		t.add(id, cell{"warning", yellow}, text(""), text(warning))
	}
}

func coveredText(v verify.Verdict) string {
	covered := fmt.Sprintf("%s, %s", counted(v.Transcript.Turns, "turn"), counted(v.Transcript.Checkpoints, "checkpoint"))
	if open := v.Transcript.UnsignedBytes + v.Transcript.TornBytes; open > 0 && !v.Status.Terminal() {
		covered += fmt.Sprintf("; %d bytes since the last one, the thread still works", open)
	}
	return covered
}
