package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// dispatch runs a call and returns what the model is given.
func (r *run) dispatch(ctx context.Context, c llm.Block) toolResult {
	if r.Recorded != nil {
		return referee{r}.result(ctx, c)
	}
	result, err := r.invoke(ctx, c)
	if err != nil && wasInterrupted(ctx) {
		return r.show(c, brokenOff(c).Body(), true)
	}
	if err != nil {
		result, err = r.afterFailure(ctx, c, err)
	}
	if err != nil {
		f := action.ToolFault(c.ToolName, err)
		r.Log.Debug().Str("tool", c.ToolName).Str("code", string(f.Code)).Msg(f.Message)
		return r.show(c, f.Body(), true)
	}
	shown := r.show(c, result, tool.Failed(result))
	shown.ended = r.children.endsIn(result)
	return shown
}

func (r *run) invoke(ctx context.Context, c llm.Block) (any, error) {
	entry, known := r.toolset.palette.Get(c.ToolName)
	if !known {
		return nil, r.notOffered(c.ToolName)
	}
	args := argumentsOf(c)
	if err := malformed(c, args); err != nil {
		return nil, err
	}
	caller := r.caller(c)
	caller.Secrets = r.secrets() // results are masked, see [run.show]
	if entry.Kind == palette.KindPrimary {
		t, known := r.Actions.Tool(caller, entry.ID)
		if !known {
			return nil, fmt.Errorf("bug; the palette offers %s, which is no primary action", entry.ID)
		}
		return r.await(ctx, entry.ID, func() (any, error) { return t.Call(ctx, caller.Env, args) })
	}
	if entry.Kind == palette.KindArtifact {
		return r.await(ctx, entry.ID, func() (any, error) { return r.toolset.artifacts.Call(ctx, caller.Env, args) })
	}
	if entry.ID == action.OrchestratorID || entry.ID == action.ThreadDirectiveID {
		// Not in the registry: they act on threads, and the primary action knows how.
		return r.await(ctx, entry.ID, func() (any, error) {
			return r.Actions.Execute(ctx, caller, action.ExecuteRequest{
				ItemType: string(item.Tool), ItemID: entry.ID, Parameters: tool.Object(args),
			})
		})
	}
	if err := r.allow(palette.Required(entry.ID)); err != nil {
		return nil, err
	}
	return r.await(ctx, entry.ID, func() (any, error) {
		return r.Executor.RunItem(ctx, r.Resolver, entry.ID, executor.Call{Env: caller.Env, Args: args, Secrets: caller.Secrets, Warn: r.warn})
	})
}

// argumentsOf are those of a call; none are an empty object.
func argumentsOf(c llm.Block) json.RawMessage {
	if len(bytes.TrimSpace(c.Input)) == 0 {
		return json.RawMessage("{}")
	}
	return c.Input
}

// malformed says why arguments cannot be read; nil when they can.
func malformed(c llm.Block, args json.RawMessage) error {
	if err := notJSON(args); err != nil {
		return tool.Faultf(tool.CodeBadArguments, "the arguments of %s are not valid JSON (%w): %s", c.ToolName, err, clip(args)).
			WithHint("call it again with one JSON object")
	}
	return nil
}

// patience is how long a tool may take to end when it is told to. It is more
// than a command is given that ignores SIGTERM and leaves its output open.
const patience = 2*process.DefaultGrace + time.Second

// await waits for what stands behind a tool, and when ctx has ended no longer
// than the run's patience. A call that goes on then is left behind: it ends with this
// process, which does not live long after its thread, its commands are found by
// their mark, and the transcript takes nothing from it below the end.
func (r *run) await(ctx context.Context, id string, call func() (any, error)) (any, error) {
	type answer struct {
		result any
		err    error
	}
	answered := make(chan answer, 1)
	r.hands.do(func() {
		// A panic in a goroutine of its own would end the process.
		result, err := tool.Guarded(id, call)
		answered <- answer{result, err}
	})
	select {
	case a := <-answered:
		return a.result, a.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(r.patience)
	defer timer.Stop()
	select {
	case a := <-answered:
		return a.result, a.err
	case <-timer.C:
		r.Log.Warn().Str("tool", id).Dur("waited_ms", r.patience).Msg("a tool did not end when it was stopped and is left behind")
		return nil, tool.Faultf(tool.CodeCancelled, "%s was told to stop, did not within %s, and is left behind", id, r.patience)
	}
}

// env is where the tools of this thread run.
func (r *run) env() tool.Env {
	env := tool.Env{Project: r.Project, Work: r.place.in, ThreadID: r.ID, TraceID: r.meta.TraceID, Artifacts: r.records().Artifacts(), Purse: &r.purse}
	if !r.Secrets.Empty() {
		env.Mask = r.Secrets
	}
	return env
}

// caller is this thread as the primary actions see it. Parent and capabilities
// of what it starts come from here, not from the model.
func (r *run) caller(c llm.Block) action.Caller {
	return action.Caller{
		Env:      r.env(),
		InThread: true,
		Allow:    r.allow,
		Started: func(child thread.ID, directive string) {
			r.children.add(child)
			r.record(thread.EventChildThreadStarted, transcript.ChildStarted{
				ThreadID: child, Directive: directive, CallID: c.ToolCallID,
			})
			r.Crashpoints.At(CrashChild)
		},
	}
}

// allow refuses what this thread may not do, and says what it lacks.
func (r *run) allow(required string) error {
	if denied := r.task.grant.Missing(required); denied != nil {
		return tool.Faultf(tool.CodePermissionDenied, "%w", denied).With("missing_capability", required)
	}
	return nil
}

// notOffered explains a call of a name that the palette does not have: it is the last
// turn, the tool is denied, there was no room for it, or there is none.
func (r *run) notOffered(name string) error {
	if r.last {
		return tool.Faultf(tool.CodeUnsupported, "%s cannot be called in the last turn; to be called there are: %s",
			item.Shown(name), strings.Join(r.offered(), ", "))
	}
	for _, d := range r.Executor.Definitions(func(string) bool { return false }) {
		id := d.ID
		if palette.FlatName(id) != name {
			continue
		}
		if err := r.allow(palette.Required(id)); err != nil {
			return err
		}
		return tool.Faultf(tool.CodeNotFound, "the tool %s is not offered under a name of its own, for lack of room", id).
			WithHint("call it through rye_execute, with item_type tool and item_id %s", id)
	}
	return tool.Faultf(tool.CodeNotFound, "there is no tool %q; there are: %s", name, strings.Join(r.offered(), ", "))
}

func (r *run) offered() []string {
	var names []string
	for _, e := range r.toolset.palette.Entries {
		names = append(names, e.Name)
	}
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

// notJSON says where a text stops being JSON; nil where it is.
func notJSON(text []byte) error {
	var value json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&value); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the first value")
	}
	return nil
}
