package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/runtime/loop"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	rerun "github.com/rye-mcp/rye-mcp/runtime/replay"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// replayer replays recorded threads with what a project is today. Nothing that it gives
// the loop can run a tool, start a thread or reach a network.
type replayer struct {
	sys     System
	project *project
	starter *replay.Starter
}

func newReplayer(sys System, p *project) *replayer {
	return &replayer{sys, p, &replay.Starter{Planner: p.control.Planner, Settings: p.control.Settings}}
}

// all replays every thread of a recording, each by itself.
func (r *replayer) all(ctx context.Context, from *recording.Recording, directive string) ([]threadReplay, error) {
	recorded, err := from.Threads()
	if err != nil {
		return nil, err
	}
	var reports []threadReplay
	for _, t := range recorded {
		report, _, err := r.one(ctx, from, t, directive)
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// one replays a thread. Now is what was observed; nil where it came to no end.
func (r *replayer) one(
	ctx context.Context, from *recording.Recording, t *recording.Thread, directive string,
) (report threadReplay, now *recording.Observed, err error) {
	report = threadReplay{ThreadID: t.ThreadID, Directive: t.Directive, Verdict: verdictSame, Differences: []rerun.Difference{}, Note: notCompared(t.Meta)}
	start, run, err := r.run(ctx, from, t, directive)
	if ctx.Err() != nil {
		return report, nil, context.Cause(ctx)
	}
	if err != nil {
		f := tool.AsFault(err)
		report.Verdict, report.Why, report.Try = verdictCannot, f.Message, advice(f)
		if f.Code == tool.CodeInvalidInputs { // a replay is given none of its own
			report.Try = "the directive must take the inputs of the recorded thread: change it, or name another; rye-mcp run gives other inputs"
		}
		return report, nil, nil
	}
	report.Calls = len(run.Observed.Calls)
	report.Turns = run.Turns
	report.Differences = append(report.Differences, start.Differences...)
	report.Differences = append(report.Differences, rerun.Compare(t, run)...)
	if len(report.Differences) > 0 {
		report.Verdict = verdictDiffers
	}
	if run.Over == nil && run.Left == 0 {
		now = &run.Observed
	}
	return report, now, nil
}

// run plans the thread as of today, and replays it.
func (r *replayer) run(ctx context.Context, from *recording.Recording, t *recording.Thread, directive string) (*replay.Start, *rerun.Run, error) {
	start, err := r.starter.Today(ctx, from, t, directive)
	if err != nil {
		return nil, nil, err
	}
	scratch, err := os.MkdirTemp("", "rye-replay-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	left, err := scratchRecords(scratch)
	if err != nil {
		return nil, nil, err
	}
	db, err := scratchStore(ctx, scratch)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = db.Close() }() // nobody reads it again
	today, err := r.today()
	if err != nil {
		return nil, nil, err
	}
	run, err := rerun.Again(ctx, rerun.Job{Thread: t, Meta: start.Meta, Secrets: start.Secrets, Store: db, Records: left, Today: today})
	if err != nil {
		return nil, nil, err
	}
	redact := recorderOf(r.sys, r.project).Redactor()
	redact.Paths = append([]recording.Path{{Folder: scratch, As: "{scratch}"}}, redact.Paths...)
	run.Observed, err = redact.Observed(run.Observed)
	return start, run, err
}

// today is what the loop is given of the project.
func (r *replayer) today() (loop.Deps, error) {
	p := r.project
	call := p.control.Settings.Begin()
	settings, err := loopSettings(call.Config, call.Trust)
	if err != nil {
		return loop.Deps{}, err
	}
	roots := p.resolver.Roots()
	tools, err := newExecutor(r.sys, roots, resolve.New(roots), stillTools(p.builtins(r.sys, roots.User)), stillPrimitives(p.primitives()), p.reach.Question, call.Trust, p.config.Read, memoryIn(call.Config))
	if err != nil {
		return loop.Deps{}, err
	}
	actions := action.New(action.Deps{
		Resolver: p.resolver, Trust: call.Trust, Executor: tools, Now: r.sys.Now, Threads: stillThreads{operation.All()},
		Search: func(context.Context, search.Query) (search.Page, error) { return search.Page{}, errStill },
		Key:    func() (*sign.Key, error) { return nil, errStill },
	})
	return loop.Deps{
		Project: p.path, Resolver: p.resolver, Trust: call.Trust, Executor: tools, Actions: actions, Settings: settings, Env: p.env,
	}, nil
}

// errStill is what everything says that a replay may not do. The loop does not ask: it is
// what would come of it if it did.
var errStill = errors.New("a replay runs no tool and starts nothing")

// stillTool is a tool that is shown and cannot be run.
type stillTool struct{ tool.Tool }

// Outline implements [tool.Outliner].
func (t stillTool) Outline() tool.Definition { return tool.OutlineOf(t.Tool) }

// Call implements [tool.Tool].
func (stillTool) Call(context.Context, tool.Env, json.RawMessage) (any, error) { return nil, errStill }

func stillTools(tools []tool.Tool) []tool.Tool {
	still := make([]tool.Tool, len(tools))
	for i, t := range tools {
		still[i] = stillTool{t}
	}
	return still
}

// stillPrimitive runs no tool of an item.
type stillPrimitive struct{}

// Check implements [chain.Primitive].
func (stillPrimitive) Check(*chain.Chain) (notes []string, err error) { return nil, nil }

// Run implements [chain.Primitive].
func (stillPrimitive) Run(context.Context, *chain.Plan) (any, error) { return nil, errStill }

func stillPrimitives(primitives map[string]chain.Primitive) map[string]chain.Primitive {
	still := map[string]chain.Primitive{}
	for _, id := range slices.Collect(maps.Keys(primitives)) {
		still[id] = stillPrimitive{}
	}
	return still
}

// stillThreads tells which operations there are, and does none.
type stillThreads struct{ *operation.Table }

var _ action.Threads = stillThreads{}

// Start implements [action.Threads].
func (stillThreads) Start(context.Context, action.Caller, action.StartRequest) (any, error) {
	return nil, errStill
}

// Plan implements [action.Threads].
func (stillThreads) Plan(context.Context, action.Caller, action.StartRequest) (any, error) {
	return nil, errStill
}

// StartTool implements [action.Threads].
func (stillThreads) StartTool(context.Context, action.Caller, action.ToolRequest) (any, error) {
	return nil, errStill
}

// Operate implements [action.Threads].
func (stillThreads) Operate(context.Context, action.Caller, string, tool.Object) (any, error) {
	return nil, errStill
}

// Runs implements [action.Threads].
func (stillThreads) Runs(_ context.Context, id thread.ID) (string, error) {
	return "", fmt.Errorf("thread %s: %w", id, errStill)
}
