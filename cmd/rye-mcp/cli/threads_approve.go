package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// byPerson is who answers on the command line.
const byPerson = "a person, with rye-mcp threads approve"

type approveFlags struct {
	raise           []string // NAME=VALUE
	finish, stop    bool
	goOn            bool
	accept, decline bool
	summary         string // a file, or -; implies accept
	json            bool
}

func newThreadsApproveCommand(sys System, opts *options) *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "approve [ID]",
		Short: "Answer threads that wait to be told whether to go on",
		Long: `Answer a thread that waits because it has reached a limit (on_limit: ask), because
it would hand over to a new thread (continuation.approval: ask), or because a hook
wants somebody to decide. Without an id the open questions are listed. Without a
flag the question is shown, and on a terminal it is asked. The first answer counts;
without one the default holds at the deadline.

The summary of a handoff can be edited: in your editor ($VISUAL, $EDITOR) on a
terminal, or with --summary and a file, or "-" for standard input.

A thread that another has started can be given no more than that one has.`,
		Example: `  rye-mcp threads approve
  rye-mcp threads approve review-17 --raise turns=30,spend=0.50
  rye-mcp threads approve review-17 --finish
  rye-mcp threads approve review-17 --summary summary.md`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.liveThreads,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			in, err := flags.answer(cmd.Context(), sys)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				if in.Decision != "" {
					return &usageError{message: "an answer needs the thread it is for", try: "rye-mcp threads approve"}
				}
				return withProject(cmd.Context(), sys, *opts, func(ctx context.Context, p *project) error {
					return listQuestions(ctx, sys, *opts, p, flags.json)
				})
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				a := approval{sys: sys, opts: *opts, project: p, json: flags.json}
				if in.Decision == "" {
					return a.ask(ctx, id)
				}
				in.ThreadID = id
				return a.give(ctx, in)
			})
		}),
	}
	cmd.Flags().StringSliceVar(&flags.raise, "raise", nil, "let it go on under new `limits`, such as turns=30,spend=0.50")
	cmd.Flags().BoolVar(&flags.finish, "finish", false, "give it one last turn, to return what it has")
	cmd.Flags().BoolVar(&flags.stop, "stop", false, "let the limit, or what went wrong, end it")
	cmd.Flags().BoolVar(&flags.goOn, "go-on", false, "let it go on, and try again what failed")
	cmd.Flags().BoolVar(&flags.accept, "accept", false, "let it hand over")
	cmd.Flags().BoolVar(&flags.decline, "decline", false, "do not let it hand over")
	cmd.Flags().StringVar(&flags.summary, "summary", "", "let it hand over with the summary in this file (-: standard input)")
	completeWith(cmd, "raise", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, name := range item.LimitNames() {
			names = append(names, name+"=")
		}
		return names, withoutGap
	})
	jsonFlag(cmd, &flags.json)
	return cmd
}

// answer is what the flags say; without a decision when they say nothing.
func (f approveFlags) answer(ctx context.Context, sys System) (in operation.ApproveInput, err error) {
	given := map[thread.Decision]bool{
		thread.Raise: len(f.raise) > 0, thread.Finish: f.finish, thread.Stop: f.stop, thread.GoOn: f.goOn,
		thread.Accept: f.accept || f.summary != "", thread.Decline: f.decline,
	}
	for _, d := range []thread.Decision{thread.Raise, thread.Finish, thread.Stop, thread.GoOn, thread.Accept, thread.Decline} {
		switch {
		case !given[d]:
		case in.Decision != "":
			return in, &usageError{message: fmt.Sprintf("%s and %s are two answers", flagOf(in.Decision), flagOf(d)), try: "give one of them"}
		default:
			in.Decision = d
		}
	}
	if f.summary != "" {
		if in.Summary, err = givenSummary(ctx, sys, f.summary); err != nil {
			return in, err
		}
	}
	in.Limits, err = parseLimits(f.raise)
	return in, err
}

// givenSummary reads the summary that a successor is to be given from a file, or from
// standard input.
func givenSummary(ctx context.Context, sys System, file string) (text string, err error) {
	if file == "-" {
		text, err = readMessage(ctx, sys.Stdin)
	} else {
		text, err = readSummary(sys, file)
	}
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", &usageError{message: "the summary is empty", try: "--accept hands over with the summary that was proposed"}
	}
	return text, nil
}

// readSummary reads a file, of which one byte more than a summary can have.
func readSummary(sys System, name string) (string, error) {
	if !filepath.IsAbs(name) {
		dir, err := sys.Getwd()
		if err != nil {
			return "", err
		}
		name = filepath.Join(dir, name)
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, thread.MaxSummary+1))
	return string(text), err
}

// flagOf is the flag that gives a decision.
func flagOf(d thread.Decision) string { return "--" + strings.ReplaceAll(string(d), "_", "-") }

// parseLimits reads NAME=VALUE. Names are left to whoever knows the limits.
func parseLimits(pairs []string) (item.LimitSet, error) {
	limits := item.LimitSet{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return nil, &usageError{message: fmt.Sprintf("%q is not NAME=VALUE", pair), try: "--raise turns=30,spend=0.50"}
		}
		number, err := parseLimit("--raise", name, value)
		if err != nil {
			return nil, err
		}
		limits[name] = number
	}
	return limits, nil
}

func listQuestions(ctx context.Context, sys System, opts options, p *project, asJSON bool) error {
	found, err := p.control.View.Questions(ctx)
	if err != nil {
		return err
	}
	return conclude(sys, asJSON, found, true, func() error {
		d := newDisplay(sys, opts)
		if len(found.Waiting) == 0 {
			_, err := fmt.Fprintln(d.out, "No thread waits for an answer.")
			return err
		}
		t := table{header: []string{"THREAD", "ABOUT", "ANSWERS", "DEFAULT", "TIME LEFT"}}
		for _, w := range found.Waiting {
			t.add(text(string(w.ThreadID)), text(w.Code), text(joined(w.Options)), text(string(w.Default)), text(plain.Age(w.DeadlineAt.Sub(sys.Now()))))
		}
		return t.write(d)
	})
}

// approval shows the question of a thread and answers it.
type approval struct {
	sys     System
	opts    options
	project *project
	json    bool
}

// ask shows what the thread waits to be told. On a terminal it is asked.
func (a approval) ask(ctx context.Context, id thread.ID) error {
	w, err := a.project.control.View.Question(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.sys.Stdout, view.Questions{Success: true, Waiting: []view.Waiting{w}})
	}
	if err := a.show(w); err != nil || !onTerminal(a.sys.Stdin) || !onTerminal(a.sys.Stdout) {
		return err
	}
	in, err := a.prompt(ctx, w)
	if err != nil || in.Decision == "" {
		return err
	}
	return a.give(ctx, in)
}

func (a approval) show(w view.Waiting) error {
	var t table
	row := func(name, value string) { t.add(cell{name, dim}, text(value)) }
	for _, name := range item.LimitNames() {
		if now, ok := w.Limits[name]; ok {
			value := strconv.FormatFloat(now, 'f', -1, 64)
			if most, bounded := w.Most[name]; bounded {
				value += " (at most " + strconv.FormatFloat(most, 'f', -1, 64) + ")"
			}
			row(name, value)
		}
	}
	row("answers", joined(w.Options))
	row("else", fmt.Sprintf("%s at %s", w.Default, w.DeadlineAt.Format(time.RFC3339)))
	d := newDisplay(a.sys, a.opts)
	if _, err := fmt.Fprintf(d.out, "%s\n", plain.Lines(wholeText(w))); err != nil {
		return err
	}
	return t.write(d)
}

// wholeText is a question with all of the summary that it proposes.
func wholeText(w view.Waiting) string {
	ask, _, cut := strings.Cut(w.Text, "\n")
	if w.Summary == "" || !cut {
		return w.Text
	}
	return ask + "\n\n" + w.Summary + "\n"
}

// prompt reads an answer from the terminal; without a decision when the person gives
// none.
func (a approval) prompt(ctx context.Context, w view.Waiting) (in operation.ApproveInput, err error) {
	const edit = "edit"
	answers := joined(w.Options)
	if w.Kind == thread.AskHandoff {
		answers = strings.Replace(answers, string(thread.Accept), string(thread.Accept)+", "+edit, 1)
	}
	q := newQuestions(a.sys, a.sys.Stdout)
	said, err := q.ask(fmt.Sprintf("Answer (%s; nothing leaves it):", answers))
	in = operation.ApproveInput{ThreadID: w.ThreadID, Decision: thread.Decision(said)}
	switch {
	case err != nil:
		return in, err
	case w.Kind == thread.AskHandoff && said == edit:
		in.Decision = thread.Accept
		in.Summary, err = a.editSummary(ctx, w)
		return in, err
	case in.Decision != thread.Raise:
		return in, nil
	}
	given, err := q.ask("New limits (such as turns=30,spend=0.50):")
	if err != nil {
		return operation.ApproveInput{}, err
	}
	in.Limits, err = parseLimits(strings.FieldsFunc(given, func(r rune) bool { return r == ',' || r == ' ' }))
	return in, err
}

// editSummary has the person edit the summary that is proposed.
func (a approval) editSummary(ctx context.Context, w view.Waiting) (string, error) {
	text, file, err := editText(ctx, a.sys, []byte(w.Summary), "summary.md", "rye-mcp threads approve "+string(w.ThreadID)+" --summary FILE")
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(string(text)) == "":
		return "", &usageError{message: "the summary is empty, so nothing was answered", try: "rye-mcp threads approve " + string(w.ThreadID) + " --accept"}
	case len(text) > thread.MaxSummary:
		return "", &usageError{
			message: fmt.Sprintf("the summary has %d bytes, and at most %d are taken", len(text), thread.MaxSummary),
			try:     fmt.Sprintf("shorten it: rye-mcp threads approve %s --summary %s", w.ThreadID, file),
		}
	}
	return string(text), os.Remove(file)
}

func (a approval) give(ctx context.Context, in operation.ApproveInput) error {
	by := atTerminal(a.sys)
	by.By = byPerson
	done, err := operation.ApproveThread.Run(ctx, a.project.control, by, in)
	if err != nil {
		return err
	}
	return conclude(a.sys, a.json, done, true, func() error {
		_, err := fmt.Fprintf(a.sys.Stdout, "%s: %s\n", done.ThreadID, done.Decision)
		return err
	})
}

func joined(decisions []thread.Decision) string {
	var words []string
	for _, d := range decisions {
		words = append(words, string(d))
	}
	return strings.Join(words, ", ")
}
