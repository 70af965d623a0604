package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	rerun "github.com/rye-mcp/rye-mcp/runtime/replay"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type replayFlags struct {
	directive string
	trust     string
	json      bool
}

func newReplayCommand(sys System, opts *options) *cobra.Command {
	var flags replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE|ID",
		Short: "Run a recorded thread again without a model, and tell what is different today",
		Long: `Run a thread again with the answers that its model gave and the results that its
tools gave then, and with the directive, what that is composed of, hooks and tools as
they are today. There is no network, no tool is run, nothing is paid and nothing of
the project changes.

What differs is shown: the first request (system prompt, messages, tools), the calls
of tools and whether they would be let through, the hooks that fire, and the end. A
model answers what it answered then, whatever it is asked now; where today's thread
asks for more than is on record, the replay ends and says so.

FILE is one of "rye-mcp threads export", signed by you or by a key that you trust. An
ID, or "latest", is a thread of this project.

Exit code 0 when nothing differs, 1 when something does, 2 when the thread cannot be
replayed.`,
		Example: `  rye-mcp replay latest
  rye-mcp replay .ai/tests/review/small.ryetest --directive review-v2`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			return replayCommand(cmd.Context(), sys, *opts, args[0], flags)
		}),
	}
	cmd.Flags().StringVar(&flags.directive, "directive", "", "with this directive in place of its own; an id, or a file below .ai/directives")
	cmd.Flags().StringVar(&flags.trust, "trust", "", "fingerprint of a key whose recording is replayed although you do not trust it")
	jsonFlag(cmd, &flags.json)
	return cmd
}

// Verdicts of replays.
const (
	verdictSame    = "same"
	verdictDiffers = "differs"
	verdictCannot  = "cannot_replay"
)

func replayCommand(ctx context.Context, sys System, opts options, what string, flags replayFlags) error {
	p, err := openNamed(ctx, sys, opts)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	directive, err := directiveID(p, flags.directive)
	if err != nil {
		return err
	}
	r, err := recordingOf(ctx, sys, p, what, flags.trust)
	if err != nil {
		return cannotReplay(sys, err)
	}
	reports, err := newReplayer(sys, p).all(ctx, r, directive)
	if err != nil {
		return err
	}
	if flags.json {
		err = writeJSON(sys.Stdout, map[string]any{"verdict": worst(reports), "threads": reports})
	} else {
		err = writeReports(sys, reports)
	}
	if err != nil {
		return err
	}
	return exitOf(worst(reports))
}

// cannotReplay tells why there is no replay, with the exit code of that.
func cannotReplay(sys System, err error) error {
	if errors.As(err, new(*usageError)) || errors.Is(err, context.Canceled) {
		return err
	}
	_ = report(sys, err, "rye-mcp replay --help")
	return exitError{code: exitCannotReplay}
}

func exitOf(verdict string) error {
	switch verdict {
	case verdictDiffers:
		return exitError{code: exitFailure}
	case verdictCannot:
		return exitError{code: exitCannotReplay}
	}
	return nil
}

// worst is the verdict about several threads: a difference counts most.
func worst(reports []threadReplay) string {
	verdict := verdictSame
	for _, r := range reports {
		if r.Verdict == verdictDiffers || verdict == verdictSame {
			verdict = r.Verdict
		}
		if verdict == verdictDiffers {
			break
		}
	}
	return verdict
}

// recordingOf is a recording in a file, or one that is made of a thread now.
func recordingOf(ctx context.Context, sys System, p *project, what, trusted string) (*recording.Recording, error) {
	if info, err := os.Stat(what); err == nil && !info.IsDir() || strings.HasSuffix(what, recording.Extension) {
		return openRecording(p, what, trusted)
	}
	if there, err := p.store.Now(ctx); err != nil {
		return nil, err
	} else if there == nil {
		return nil, errNoThreads
	}
	id, err := completeID(ctx, p, what)
	if err != nil {
		return nil, err
	}
	return recorderOf(sys, p).Record(ctx, id, replay.Scope{})
}

// openRecording reads a recording that somebody has signed whom the user trusts, or whose
// key was named.
func openRecording(p *project, file, trusted string) (*recording.Recording, error) {
	r, err := recording.Open(file)
	if err != nil {
		return nil, tool.Faultf(tool.CodeInvalidItem, "%s: %w", file, err).WithTry("rye-mcp threads export ID --out FILE writes one")
	}
	_, known, err := signerOf(p, r.Signer)
	if err != nil {
		return nil, err
	}
	if print := r.Signer.Fingerprint(); !known && trusted != print {
		return nil, tool.Faultf(tool.CodeIntegrity, "%s is signed by key %s, which you do not trust", file, print).
			WithTry("ask who signed it for the fingerprint; if it is that one, add --trust %s", print)
	}
	return r, nil
}

// signerOf says whose a key is, and whether that counts.
func signerOf(p *project, key *sign.PublicKey) (owner string, known bool, err error) {
	keyring, err := p.trust.Keyring()
	if err != nil {
		return "", false, err
	}
	owner, known = keyring.Trusts(key)
	return owner, known, nil
}

// directiveID is the id of a directive that was named by its id or its file.
func directiveID(p *project, given string) (string, error) {
	if !strings.HasSuffix(given, ".md") {
		return given, nil
	}
	file, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	roots := p.resolver.Roots()
	for _, root := range []string{roots.Project, roots.User} {
		if below, is := pathname.Inside(filepath.Join(root, ".ai", "directives"), file); is {
			id := strings.TrimSuffix(filepath.ToSlash(below), ".md")
			return id, item.CheckID(id)
		}
	}
	return "", &usageError{
		message: fmt.Sprintf("%s does not lie below .ai/directives, so what it extends and loads cannot be told", given),
		try:     "put it there under another name, sign it, and give its id to --directive",
	}
}

func writeReports(sys System, reports []threadReplay) error {
	for _, r := range reports {
		if _, err := fmt.Fprint(sys.Stdout, plain.Lines(r.text())); err != nil {
			return err
		}
	}
	return nil
}

// threadReplay is what came of the replay of a thread.
type threadReplay struct {
	ThreadID    thread.ID          `json:"thread_id"`
	Directive   string             `json:"directive"`
	Verdict     string             `json:"verdict"`
	Why         string             `json:"why,omitempty"`
	Try         string             `json:"try,omitempty"`
	Turns       int                `json:"turns"`
	Calls       int                `json:"tool_calls"`
	Differences []rerun.Difference `json:"differences"`
	Note        string             `json:"note,omitempty"` // what was not compared
}

// notCompared says of a thread that began with the conversation of another that its first
// messages are not those of the directive.
func notCompared(meta thread.Meta) string {
	before := meta.ContinuationOf
	if meta.ForkedFrom != nil {
		before = meta.ForkedFrom.ThreadID
	}
	if meta.Continuation == nil {
		return ""
	}
	return fmt.Sprintf("it began with the conversation of %s, as recorded: what the directive says is compared in a replay of that one", before)
}

// text is a report for people.
func (r threadReplay) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", padded(r.Verdict), r.ThreadID)
	switch {
	case r.Why != "":
		fmt.Fprintf(&b, ": %s", r.Why)
		if r.Try != "" {
			fmt.Fprintf(&b, "\n  Try: %s", r.Try)
		}
	case r.Verdict == verdictSame:
		fmt.Fprintf(&b, ": %s, %s", counted(r.Turns, "turn"), counted(r.Calls, "tool call"))
	}
	b.WriteString("\n")
	if r.Note != "" {
		fmt.Fprintf(&b, "  %s\n", r.Note)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "%s:\n", d.Part)
		if d.Note != "" {
			fmt.Fprintf(&b, "  %s\n", d.Note)
		}
		for line := range strings.Lines(d.Diff) {
			fmt.Fprintf(&b, "  %s", line)
		}
	}
	return b.String()
}

func padded(verdict string) string {
	if verdict == verdictCannot {
		return "cannot "
	}
	return fmt.Sprintf("%-7s", verdict)
}
