package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/runtime/audit"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newThreadsReceiptCommand(sys System, opts *options) *cobra.Command {
	out := outFile{perm: 0o600, example: "receipt.json"}
	cmd := &cobra.Command{
		Use:   "receipt ID",
		Short: "Write a signed summary of a thread that can be checked anywhere",
		Long: `Write a signed summary of a thread that has ended: what it ran by id and hash, the
model, what it could do, its limits, what it and everything below it cost, how it
ended, and where its transcript ends. Anybody who has it can check it, and a copy of
the transcript, without the project: rye-mcp threads verify --receipt FILE.

A thread that does not verify gets no receipt, nor does any that it is below. A file
that has other bytes is replaced with --overwrite alone.`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				sealed, err := p.control.Verify.Receipt(ctx, id)
				if err != nil {
					return err
				}
				sealed = append(sealed, '\n')
				if out.name == "" {
					_, err := sys.Stdout.Write(sealed)
					return err
				}
				return out.write(sealed)
			})
		}),
	}
	cmd.Flags().StringVarP(&out.name, "out", "o", "", "write to this file instead of standard output; its folder is made")
	out.overwriteFlag(cmd)
	return cmd
}

// maxReceiptBytes bounds what is read of a receipt, which names every thread
// below its own.
const maxReceiptBytes = 64 << 20

// receiptVerdict is what threads verify --receipt writes with --json.
type receiptVerdict struct {
	Success      bool           `json:"success"`
	Error        string         `json:"error,omitempty"`
	SignedBy     string         `json:"signed_by,omitempty"` // whose key it is
	FirstBadTurn int            `json:"first_bad_turn,omitempty"`
	Transcript   bool           `json:"transcript_verified"`
	Receipt      *audit.Receipt `json:"receipt,omitempty"`
}

func verifyReceipt(sys System, opts options, flags verifyFlags) error {
	v, err := checkReceipt(sys, flags)
	v.Success = err == nil
	if !flags.json {
		if err != nil {
			return err
		}
		return writeReceipt(newDisplay(sys, opts), v)
	}
	if err != nil {
		v.Error = err.Error()
	}
	if err := writeJSON(sys.Stdout, v); err != nil {
		return err
	}
	if !v.Success {
		return exitError{code: exitFailure}
	}
	return nil
}

// checkReceipt checks a receipt and, where one is given, the transcript.
func checkReceipt(sys System, flags verifyFlags) (v receiptVerdict, err error) {
	data, err := readAtMost(flags.receipt, maxReceiptBytes)
	if err != nil {
		return v, err
	}
	receipt, key, err := audit.OpenReceipt(data)
	if err != nil {
		return v, fmt.Errorf("%s does not verify: %w", flags.receipt, err)
	}
	if v.SignedBy, err = whose(sys, key, flags.key); err != nil {
		return v, fmt.Errorf("%s does not verify: %w", flags.receipt, err)
	}
	v.Receipt = receipt
	if flags.transcript == "" {
		return v, nil
	}
	_, err = receipt.CheckTranscript(records.Copy(flags.transcript), key)
	err = unread(err, flags.transcript)
	if tampered, ok := errors.AsType[*transcript.TamperError](err); ok {
		v.FirstBadTurn = tampered.Turn
	}
	v.Transcript = err == nil
	return v, err
}

// compressedEnding is what the name of a transcript has behind it when that is compressed.
const compressedEnding = ".zst"

// unread says what to do about a copy of a transcript that could not be read.
func unread(err error, file string) error {
	switch {
	case errors.Is(err, records.ErrDamaged):
		return tool.Faultf(tool.CodeIntegrity, "%w", err).
			WithTry("zstd -dc %s > transcript.jsonl, then --transcript transcript.jsonl", file)
	case errors.Is(err, fs.ErrNotExist):
		if _, missing := os.Stat(file + compressedEnding); missing == nil {
			return tool.Faultf(tool.CodeNotFound, "%w", err).WithTry("--transcript %s, which is the same, compressed", file+compressedEnding)
		}
	}
	return err
}

// whose says to whom the key of a receipt belongs. It must be the one in the
// named file or, without one, the user's own or one that the user trusts.
func whose(sys System, key *sign.PublicKey, file string) (string, error) {
	if file != "" {
		data, err := readAtMost(file, maxReceiptBytes)
		if err != nil {
			return "", err
		}
		_, want, err := trust.ParseKey(data)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if !want.Equal(key) {
			return "", fmt.Errorf("it is signed by key %s, and %s is key %s", key.Fingerprint(), file, want.Fingerprint())
		}
		return "the key in " + file, nil
	}
	user, err := userSpace(sys)
	if err != nil {
		return "", err
	}
	roots := resolve.Roots{User: user, System: system.FS()}
	keyring, err := newGate(sys, roots).Keyring()
	if err != nil {
		return "", err
	}
	for _, e := range keyring.List() {
		switch {
		case e.Key == nil || !e.Key.Equal(key) || e.State == trust.Untrusted:
		case e.State == trust.Own:
			return "you", nil
		default:
			return e.Owner, nil
		}
	}
	return "", tool.Faultf(tool.CodeInvalidItem, "signed by a key you do not know, %s", key.Fingerprint()).
		WithHint("get the public key from who signed it, and name its file with --key, or trust it: rye-mcp keys trust FILE")
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}

func writeReceipt(d display, v receiptVerdict) error {
	var t table
	r := v.Receipt
	row := func(name, format string, args ...any) { t.add(cell{name, dim}, text(fmt.Sprintf(format, args...))) }
	t.add(cell{"receipt", dim}, cell{"verified", green})
	row("signed by", "%s, key %s", v.SignedBy, r.Signer.Fingerprint)
	if v.Transcript {
		t.add(cell{"transcript", dim}, cell{"verified", green})
	}
	row("thread", "%s", r.ThreadID)
	t.add(cell{"status", dim}, cell{string(r.Status), stateColor(r.Status)})
	row("directive", "%s, SHA-256 %s", r.Directive, r.DirectiveHash)
	if r.Snapshot != "" {
		row("snapshot of items", "%s", r.Snapshot)
	}
	row("model", "%s", r.Model)
	row("started", "%s", r.CreatedAt.Format(time.RFC3339))
	row("ended", "%s", r.CompletedAt.Format(time.RFC3339))
	row("turns", "%d", r.Cost.Turns)
	row("spend", "%s (with everything below it %s, of %s)", r.Cost.Spend, r.TreeSpend, r.Limits.Spend)
	row("below it", "%s", counted(len(r.Below), "thread"))
	for _, capability := range r.Capabilities {
		row("could", "%s", capability)
	}
	return t.write(d)
}
