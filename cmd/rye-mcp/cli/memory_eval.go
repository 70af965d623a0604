package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/rag/embed"
	"github.com/rye-mcp/rye-mcp/runtime/rag/eval"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newMemoryEvalCommand(sys System, opts *options) *cobra.Command {
	var words, asJSON bool
	cmd := &cobra.Command{
		Use:   "eval [FILE]",
		Short: "Measure how well questions find the texts that answer them",
		Long: `Measure how well questions find the texts that answer them: by words, by vectors and
by both, with the settings of recall. No model judges anything; what was found is
held against what is known to answer.

FILE has JSON lines, in any order; - reads standard input:
  {"id": "a1", "text": "Ids are UUIDs, because shards are merged."}
  {"question": "How are rows numbered?", "evidence": ["a1"]}
A question with empty evidence is one that nothing answers. Without FILE a generated
set is asked: 100 facts among 900 texts like them, in other words.

Vectors are those of the embedding endpoint of agent/memory.yaml where memory is on,
which may cost money. The index is a temporary one; nothing of yours is read or
changed.`,
		Example: `  rye-mcp memory eval
  rye-mcp memory eval questions.jsonl --json
  rye-mcp memory eval --words`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			set, err := evalSet(sys, args)
			if err != nil {
				return err
			}
			p, err := openNamed(cmd.Context(), sys, *opts)
			if err != nil {
				return err
			}
			told, err := p.evaluate(cmd.Context(), sys, set, words)
			if err := errors.Join(err, p.Close()); err != nil {
				return err
			}
			return conclude(sys, asJSON, told, true, func() error { return writeEvaluation(sys, newDisplay(sys, *opts), told) })
		}),
	}
	cmd.Flags().BoolVar(&words, "words", false, "words alone; no vectors are made and no endpoint is asked")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// evalSet reads the set that a command line names.
func evalSet(sys System, args []string) (set eval.Set, err error) {
	if len(args) == 0 {
		return eval.Planted(eval.Standard()), nil
	}
	name, in := args[0], sys.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return set, &usageError{message: err.Error(), try: "rye-mcp memory eval, which asks a set of its own"}
		}
		defer func() { _ = f.Close() }()
		in = io.Reader(f)
	}
	if set, err = eval.Read(in); err != nil {
		return set, &usageError{message: name + ": " + plain.Line(err.Error()), try: "rye-mcp memory eval --help, which shows the lines that are known"}
	}
	return set, nil
}

// evaluationJSON is what an evaluation tells.
type evaluationJSON struct {
	Success bool `json:"success"`
	eval.Report
	// WordsAlone says why there are no vectors; empty where there are.
	WordsAlone string        `json:"words_alone,omitempty"`
	Spend      thread.Micros `json:"spend"` // what the vectors cost
	Unpriced   bool          `json:"unpriced,omitempty"`
}

// evaluate asks a set in a temporary index.
func (p *project) evaluate(ctx context.Context, sys System, set eval.Set, words bool) (told evaluationJSON, err error) {
	settings, err := p.memorySettings()
	if err != nil {
		return told, err
	}
	dir, err := os.MkdirTemp("", "rye-eval-")
	if err != nil {
		return told, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	recall := settings.Recall
	o := eval.Options{Dir: dir, Limit: recall.Limit, MinFloor: recall.MinFloor, ScoreRatio: recall.ScoreRatio, MaxTokens: recall.MaxTokens, Now: sys.Now}
	switch {
	case words:
		told.WordsAlone = "--words asks for that"
	case !settings.Enabled:
		told.WordsAlone = "memory is off, so no embedding endpoint is asked"
	default:
		if err := mayDecide(sys, "what is paid for outside of its budget"); err != nil {
			return told, err
		}
		o.Embed = told.embedder(p, settings)
	}
	told.Report, err = eval.Run(ctx, set, o)
	if why := noEndpoint(err); why != "" && told.EmbedTokens == 0 {
		told.WordsAlone = why
		o.Embed, o.Dir = nil, filepath.Join(dir, "words")
		told.Report, err = eval.Run(ctx, set, o)
	}
	told.Success = err == nil
	return told, evalFault(err)
}

// embedder makes vectors by the settings, and counts what they cost. Nobody but the
// person at the terminal pays.
func (e *evaluationJSON) embedder(p *project, settings config.Memory) func(context.Context, []string) (eval.Vectors, error) {
	client := p.memory.embedder(settings, nil)
	return func(ctx context.Context, texts []string) (eval.Vectors, error) {
		got, err := client.Embed(ctx, texts)
		e.Spend = e.Spend.Plus(got.Cost)
		e.Unpriced = e.Unpriced || got.Unpriced
		return eval.Vectors{Model: got.Model, Vectors: got.Vectors, Tokens: got.Tokens}, err
	}
}

// noEndpoint says why there is no endpoint to ask; empty for other errors.
func noEndpoint(err error) string {
	if none, is := errors.AsType[*embed.NoneError](err); is {
		return none.Why
	}
	if key, is := errors.AsType[*provider.KeyError](err); is {
		return key.Error()
	}
	return ""
}

// evalFault says what to do about an endpoint.
func evalFault(err error) error {
	if failed, is := errors.AsType[*embed.Error](err); is {
		return tool.Faultf(tool.CodeUnsupported, "%w", err).WithTry("%s; or rye-mcp memory eval --words", failed.Try())
	}
	return err
}

// methodName is how a person calls a way to look for texts.
func methodName(by rag.Method) string {
	if by == rag.ByText {
		return "words"
	}
	return string(by)
}

func writeEvaluation(sys System, d display, told evaluationJSON) error {
	t := table{header: []string{"FOUND BY", "RECALL@1", "RECALL@5", "RECALL@10", "FALSE RECALL", "TOKENS", "NOISE"}}
	for _, row := range told.Rows {
		wrongly := "-"
		if told.Unanswered > 0 {
			wrongly = percent(row.FalseRecall)
		}
		t.add(text(methodName(row.By)), text(percent(row.Recall1)), text(percent(row.Recall5)), text(percent(row.Recall10)),
			text(wrongly), text(fmt.Sprintf("%.0f", row.Tokens)), text(percent(row.Noise)))
	}
	if err := t.write(d); err != nil {
		return err
	}
	line := fmt.Sprintf("%s, %s, %d of them without an answer", counted(told.Documents, "text"), counted(told.Questions, "question"), told.Unanswered)
	switch {
	case told.Model == "":
		line += "; no vectors: " + told.WordsAlone
	case told.Unpriced:
		line += fmt.Sprintf("; vectors of %s for %d tokens, at a price that is not known", told.Model, told.EmbedTokens)
	default:
		line += fmt.Sprintf("; vectors of %s for %d tokens, $%s", told.Model, told.EmbedTokens, told.Spend)
	}
	_, err := fmt.Fprintln(sys.Stdout, plain.Line(line))
	return err
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
