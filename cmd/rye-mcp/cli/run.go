package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// inputEnvFlag gives an input whose value must not stand on the command line.
const inputEnvFlag = "input-env"

type runFlags struct {
	startFlags
	inputs []string
	env    []string // inputs that variables of the environment hold
	name   string
	meta   []string // KEY=VALUE
}

func newRunCommand(sys System, opts *options) *cobra.Command {
	var flags runFlags
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "run [DIRECTIVE]",
		Short: "Run a directive as a thread and stream its answer",
		Long: `Run a directive as a thread and write what its model says to standard output as
it is said; what it does goes to standard error. Ctrl-C cancels the thread.
Without a directive it shows which there are, and lets you choose.

Inputs that the directive declares secret are given with --input-env: every user
of the machine can read the arguments of a command.

Exit code 0 when the thread completed, 1 when it did not, 130 when it was
cancelled.`,
		Example: `  rye-mcp run hello --input name=Ada
  rye-mcp run review/security --input path=src --limit spend=0.50 --model high
  rye-mcp run deploy --input-env token=DEPLOY_TOKEN`,
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return offerDirectives(cmd.Context(), sys, *opts, flags)
			}
			return runDirective(cmd.Context(), sys, *opts, args[0], flags)
		},
	}
	cmd.Flags().StringArrayVarP(&flags.inputs, "input", "i", nil, "an input as `name=value`; repeat for more")
	cmd.Flags().StringArrayVar(&flags.env, inputEnvFlag, nil, "an input as `name=VARIABLE` of the environment that holds it; repeat for more")
	cmd.Flags().StringVar(&flags.name, "name", "", "what the thread is called instead of the first words of its prompt")
	cmd.Flags().StringArrayVar(&flags.meta, "meta", nil, "metadata to note of it as `key=value`; repeat for more")
	flags.add(cmd, complete, "the directive's")
	cmd.Flags().StringVar(&flags.workspace, "workspace", "", "worktree: the thread works in a git worktree of its own")
	cmd.ValidArgsFunction = complete.directive
	completeFlag(cmd, "workspace", thread.WorkspaceTypes)
	completeWith(cmd, "input", complete.inputs)
	completeWith(cmd, inputEnvFlag, complete.inputVariables)
	return cmd
}

// startFlags are those of every command that starts a thread and shows it.
type startFlags struct {
	model  string
	limits []string
	json   bool
	// workspace is one of thread.WorkspaceTypes; only a new thread can have one.
	workspace string
}

// add defines the flags. Without --model the thread gets the model of usual.
func (f *startFlags) add(cmd *cobra.Command, complete completer, usual string) {
	cmd.Flags().StringVar(&f.model, "model", "", "provider/model, model or tier instead of "+usual)
	cmd.Flags().StringArrayVar(&f.limits, "limit", nil, "a limit as `name=value`, such as spend=0.10; repeat for more")
	cmd.Flags().BoolVar(&f.json, "json", false, "write the result as one JSON object instead of streaming")
	completeWith(cmd, "model", complete.models)
	completeWith(cmd, "limit", complete.limits)
}

// overrides are the limits that were given.
func (f *startFlags) overrides() (item.LimitSet, error) {
	given, err := pairs("--limit", f.limits)
	if err != nil {
		return nil, err
	}
	limits := make(item.LimitSet, len(given))
	for name, text := range given {
		if limits[name], err = parseLimit("--limit", name, text); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// parseLimit reads the value of a limit.
func parseLimit(flag, name, text string) (float64, error) {
	var value float64
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return 0, &usageError{message: fmt.Sprintf("%s %s=%s is not a number", flag, name, text), try: flag + " spend=0.10"}
	}
	return value, nil
}

func runDirective(ctx context.Context, sys System, opts options, directive string, flags runFlags) error {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return err
	}
	p, err := openProject(ctx, sys, dir, newLog(sys, io.Discard))
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	req, err := startRequest(p, sys.Getenv, directive, flags)
	if err != nil {
		return action.Fault(err)
	}
	if p.told, err = offerSettings(sys, opts, p.resolver.Roots(), flags.json); err != nil {
		return err
	}
	// An interrupt must not leave a thread behind of which nobody knows the id.
	started, err := p.control.Start(context.WithoutCancel(ctx), atTerminal(sys), req)
	if err != nil {
		return err
	}
	return showStarted(ctx, sys, opts, p, started, flags.json)
}

// showStarted names a thread that a command has started, and shows its run.
func showStarted(ctx context.Context, sys System, opts options, p *project, started view.Started, asJSON bool) error {
	if !asJSON {
		_, _ = fmt.Fprintf(sys.Stderr, "thread %s\n", started.ThreadID)
	}
	return showRun(ctx, sys, opts, p, started, asJSON, func(run runJSON) any { return run })
}

// showRun follows the run of a thread that a command has started, and tells how it ended:
// a person, or as the JSON that object makes of it.
func showRun(
	ctx context.Context, sys System, opts options, p *project, started view.Started, asJSON bool, object func(runJSON) any,
) error {
	result, err := watchRun(ctx, sys, opts, p, started, asJSON)
	if err != nil {
		return err
	}
	if !asJSON {
		return tellRun(sys, started.ThreadID, result)
	}
	if err := writeJSON(sys.Stdout, object(runJSON{started.ThreadID, result})); err != nil {
		return err
	}
	return runVerdict(result)
}

// atTerminal is the person who has given a command.
func atTerminal(sys System) action.Caller {
	return action.Caller{Person: true, Env: tool.Env{TraceID: traceID(sys)}}
}

// listening is a caller who is told how far a long operation is.
func listening[T any](by action.Caller, tell func(T)) action.Caller {
	by.Progress = func(v any) {
		if now, ok := v.(T); ok {
			tell(now)
		}
	}
	return by
}

// projectDir is the project of a command: --project, else the working
// directory.
func projectDir(sys System, opts options) (string, error) {
	if opts.project != "" {
		return opts.project, nil
	}
	return sys.Getwd()
}

// traceID is the one of the thread that a tool runs this program in, else the span that
// whoever runs it names, else a new one.
func traceID(sys System) string {
	if id := sys.Getenv(process.TraceVariable); id != "" {
		return id
	}
	if parent, ok := thread.ParseTraceparent(sys.Getenv("TRACEPARENT")); ok {
		return parent.String()
	}
	return uuid.NewString()
}

// startRequest reads the command line's inputs and limits by what the
// directive declares.
func startRequest(
	p *project, getenv func(string) string, directive string, flags runFlags,
) (action.StartRequest, error) {
	req := action.StartRequest{Directive: directive, Model: flags.model, Workspace: flags.workspace, Name: flags.name}
	noted, err := metadataPatch(flags.meta, nil)
	if err != nil {
		return req, err
	}
	req.Metadata = json.RawMessage(noted)
	found, err := p.resolver.Find(item.Directive, directive)
	if err != nil {
		return req, err
	}
	doc, err := found.Directive()
	if err != nil {
		return req, err
	}
	given, err := givenInputs(doc, getenv, flags)
	if err != nil {
		return req, err
	}
	if req.Inputs, err = inputs.FromStrings(doc, given); err != nil {
		return req, err
	}
	req.Limits, err = flags.overrides()
	return req, err
}

// givenInputs are the inputs of a command line, as text.
func givenInputs(doc *item.DirectiveDoc, getenv func(string) string, flags runFlags) (map[string]string, error) {
	given, err := pairs("--input", flags.inputs)
	if err != nil {
		return nil, err
	}
	for _, in := range doc.Inputs {
		if _, shown := given[in.Name]; shown && in.Secret {
			return nil, &usageError{
				message: fmt.Sprintf("%s is secret, and every user of the machine can read the arguments of a command", in.Name),
				try:     fmt.Sprintf("--%s %s=VARIABLE, where the variable holds the value", inputEnvFlag, in.Name),
			}
		}
	}
	variables, err := pairs("--"+inputEnvFlag, flags.env)
	if err != nil {
		return nil, err
	}
	for name, variable := range variables {
		if _, twice := given[name]; twice {
			return nil, &usageError{message: fmt.Sprintf("input %s is given twice", name), try: "give it once"}
		}
		if given[name] = getenv(variable); given[name] == "" {
			return nil, &usageError{
				message: fmt.Sprintf("--%s %s=%s: the variable is empty or not set", inputEnvFlag, name, variable),
				try:     "export " + variable,
			}
		}
	}
	return given, nil
}

func pairs(flag string, list []string) (map[string]string, error) {
	given := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, &usageError{message: fmt.Sprintf("%s %q is not name=value", flag, pair), try: flag + " name=value"}
		}
		if _, twice := given[name]; twice {
			return nil, &usageError{message: fmt.Sprintf("%s %s is given twice", flag, name), try: "give it once"}
		}
		given[name] = value
	}
	return given, nil
}

// watchRun streams a thread until it ends, or says nothing when quiet. The result
// begins with the warnings of the start, and a person reads each when it comes. An
// interrupt cancels the thread and waits for that; the result is then the cancelled
// one. So does an output that cannot be written any more: nobody reads what the
// thread is paid for. A transcript that cannot be read says nothing of that: the wait goes on
// without it.
func watchRun(
	ctx context.Context, sys System, opts options, p *project, started view.Started, quiet bool,
) (view.Result, error) {
	tell := func(warnings []string) {
		for _, w := range warnings {
			if !quiet && !slices.Contains(p.told, w) {
				_, _ = fmt.Fprintf(sys.Stderr, "Warning: %s\n", plain.Line(w))
			}
		}
	}
	if !quiet {
		defer surviveSIGPIPE()()
	}
	early := distinct(started.Warnings)
	tell(early)
	result, err := watch(ctx, sys, opts, p, started.ThreadID, quiet)
	if err != nil {
		return result, err
	}
	result.Warnings = distinct(early, result.Warnings)
	tell(result.Warnings[len(early):])
	return result, nil
}

// watch waits for a thread as [waitOrCancel] does, and streams it unless quiet.
func watch(ctx context.Context, sys System, opts options, p *project, id thread.ID, quiet bool) (result view.Result, err error) {
	if quiet {
		return waitOrCancel(ctx, sys, p, id)
	}
	unread := func(err error) error {
		_, _ = fmt.Fprintf(sys.Stderr, "Warning: what the thread says cannot be read: %s; rye-mcp threads show %s has its result\n", plain.Line(action.Fault(err).Message), id)
		return nil
	}
	err = stream(ctx, p.control.Threads.Transcript, id, newAnswerStreamer(sys, opts).see, unread, func(ctx context.Context) (err error) {
		result, err = waitOrCancel(ctx, sys, p, id)
		return err
	})
	return result, err
}

// distinct are the texts of all lists in their order, each once.
func distinct(lists ...[]string) (texts []string) {
	for _, text := range slices.Concat(lists...) {
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// stream shows what a thread writes, and who continues it, until wait has
// returned. The context of wait ends too when the output cannot be written any
// more, and when the transcript cannot be read, unless unread makes no error of that.
func stream(
	ctx context.Context, of func(thread.ID) records.Transcript, id thread.ID, see func(thread.Event) error, unread func(error) error,
	wait func(context.Context) error,
) error {
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	over := make(chan struct{})
	streamed := make(chan error, 1)
	go func() {
		var unwritten error // nobody takes what is shown
		err := followChain(context.WithoutCancel(ctx), of, id, over, func(e thread.Event) error {
			unwritten = see(e)
			return unwritten
		})
		if err != nil && unwritten == nil {
			err = unread(err)
		}
		if err != nil {
			interrupt(err)
		}
		streamed <- err
	}()
	err := wait(ctx)
	close(over)
	return errors.Join(err, <-streamed)
}

// waitOrCancel waits for a thread, or cancels it when ctx ends and waits for
// that.
func waitOrCancel(ctx context.Context, sys System, p *project, id thread.ID) (view.Result, error) {
	waited, err := p.control.Wait(ctx, untilEnd(sys, id))
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(sys.Stderr, "\ncancelling …")
		after := context.WithoutCancel(ctx)
		if _, err := p.control.Stop.By(stop.ByPerson).Cancel(after, id); err != nil {
			return view.Result{}, goesOn(id, goesOnUncancelled, err, "rye-mcp threads cancel "+string(id))
		}
		waited, err = p.control.Wait(after, untilEnd(sys, id))
	}
	if threads.StoreIsAway(err) {
		return view.Result{}, goesOn(id, "may go on, as it could not be waited for", err, "rye-mcp threads wait "+string(id))
	}
	if err != nil {
		return view.Result{}, err
	}
	return waited.Results[id], nil
}

// goesOnUncancelled is what becomes of a thread that could not be cancelled: it is paid for
// until somebody cancels it.
const goesOnUncancelled = "goes on, as it could not be cancelled"

// goesOn is a failure after which a thread that a command has started goes on, and what can
// be done about that.
func goesOn(id thread.ID, how string, cause error, try string) error {
	f := *tool.AsFault(cause)
	if first := advice(&f); first != "" {
		try = first + "; " + try
	}
	f.Message, f.Try, f.Err = fmt.Sprintf("thread %s %s: %s", id, how, f.Message), try, cause
	return &f
}

// runJSON is what run writes with --json.
type runJSON struct {
	ThreadID thread.ID `json:"thread_id"`
	view.Result
}

// tellRun tells a person how the thread ended that a command has started.
func tellRun(sys System, id thread.ID, r view.Result) error {
	if len(r.Outputs) > 0 {
		if err := writeJSON(sys.Stdout, r.Outputs); err != nil {
			return err
		}
	}
	chain := ""
	if r.ChainCost != nil {
		chain = fmt.Sprintf("; the whole chain took %s, %s", counted(r.ChainCost.Turns, "turn"), r.ChainCost.Spend)
	}
	if r.TreeSpend != nil {
		chain += fmt.Sprintf("; %s with everything below it", *r.TreeSpend)
	}
	_, _ = fmt.Fprintf(sys.Stderr, "%s after %s, %s%s\n", r.Status, counted(r.Cost.Turns, "turn"), r.Cost.Spend, chain)
	if r.NotRetried != "" {
		_, _ = fmt.Fprintf(sys.Stderr, "not tried again: %s\n", plain.Line(r.NotRetried))
	}
	if r.Error != "" {
		ended := string(cmp.Or(r.ResolvedThreadID, id))
		try := "rye-mcp threads show " + ended
		if raised := raisedLimit(r.Problem); raised != "" {
			try = fmt.Sprintf("rye-mcp threads resume %s 'go on' --limit %s; %s", ended, raised, try)
		}
		if r.Problem != nil && r.Problem.Code == string(tool.CodeIntegrity) { // the thread itself names no command
			try = "rye-mcp doctor, which names the file and the command; " + try
		}
		say(sys.Stderr, r.Error, try)
	}
	return runVerdict(r)
}

// reachedLimit matches what a [thread.LimitError] says was reached, and allowed.
var reachedLimit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(\$?([0-9.]+)s?/\$?([0-9.]+)s?\)$`) })

// raisedLimit is twice what a thread has needed of the limit that ended it, as --limit takes
// it; empty where no limit has.
func raisedLimit(p *thread.Problem) string {
	if p == nil {
		return ""
	}
	name := limit.Name(&thread.LimitError{Code: p.Code})
	m := reachedLimit().FindStringSubmatch(p.Message)
	if name == "" || m == nil {
		return ""
	}
	most := 0.0
	for _, text := range m[1:] {
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			most = max(most, value)
		}
	}
	return fmt.Sprintf("%s=%s", name, strconv.FormatFloat(2*most, 'f', -1, 64))
}

// runVerdict is the exit code of a command that has started a thread.
func runVerdict(r view.Result) error {
	switch r.Status {
	case thread.Completed, thread.Continued:
		return nil
	case thread.Cancelled:
		return exitError{code: exitCancelled}
	default:
		return exitError{code: exitFailure}
	}
}
