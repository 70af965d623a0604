package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Tools that existing directives call for what rye_execute and the thread
// operations do now.
const (
	ThreadDirectiveID = "rye/agent/threads/thread_directive"
	OrchestratorID    = "rye/agent/threads/orchestrator"
	DirectiveReturnID = "rye/agent/threads/directive_return"
)

// ThreadSummaryID is the directive that sums up a thread, and the tool of hooks that
// has it do so with the thread they belong to.
const ThreadSummaryID = "rye/agent/threads/thread_summary"

// ThreadDirectiveRequest is the input of rye/agent/threads/thread_directive.
type ThreadDirectiveRequest struct {
	DirectiveID    string        `json:"directive_id" alias:"directive_name,directive,item_id,id"`
	Inputs         tool.Object   `json:"inputs,omitempty" alias:"parameters,params"`
	Async          bool          `json:"async,omitempty" alias:"background,run_in_background" jsonschema:"do not wait: answer with the thread id at once"`
	Model          string        `json:"model,omitempty" jsonschema:"or tier"`
	Limits         item.LimitSet `json:"limits,omitempty" alias:"limit_overrides" jsonschema:"turns, tokens, spend (US dollars), duration_seconds, spawns, depth"`
	WaitSeconds    *float64      `json:"wait_seconds,omitempty" alias:"timeout" minimum:"0" jsonschema:"then it goes on"`
	RequestKey     string        `json:"request_key,omitempty" jsonschema:"any text: the same call again returns the same thread"`
	Workspace      string        `json:"workspace,omitempty" alias:"isolation" enum:"worktree"`
	ParentThreadID thread.ID     `json:"parent_thread_id,omitempty" jsonschema:"not from within a thread, which is the parent itself"`
}

// threadDirective is the older form of a fork.
func (a *Actions) threadDirective(ctx context.Context, c Caller, r ExecuteRequest) (any, error) {
	p, err := tool.Decoder[ThreadDirectiveRequest](ThreadDirectiveID, tool.SchemaFor[ThreadDirectiveRequest])(r.Parameters.Raw())
	if err != nil {
		return nil, err
	}
	if p.ParentThreadID != "" {
		if c.InThread {
			return nil, tool.Faultf(tool.CodeUnsupported, "a thread is the parent of what it starts").
				WithHint("Leave parent_thread_id out.")
		}
		if _, err := thread.ParseID(string(p.ParentThreadID)); err != nil {
			return nil, err
		}
	}
	fork := ExecuteRequest{
		ItemType: string(item.Directive), ItemID: p.DirectiveID, Parameters: p.Inputs, DryRun: r.DryRun, Thread: ThreadFork,
		Async:       p.Async || r.Async,
		Model:       cmp.Or(p.Model, r.Model),
		WaitSeconds: cmp.Or(p.WaitSeconds, r.WaitSeconds),
		RequestKey:  cmp.Or(p.RequestKey, r.RequestKey),
		Workspace:   cmp.Or(p.Workspace, r.Workspace),
	}
	if fork.Limits = p.Limits; fork.Limits == nil {
		fork.Limits = r.Limits
	}
	return a.executeItem(ctx, c, fork, p.ParentThreadID)
}

// operationMeant says of an id that no item has that it is the name of an operation.
func (a *Actions) operationMeant(id string, err error) error {
	if !errors.As(err, new(*resolve.NotFoundError)) || a.Threads == nil || !slices.Contains(a.Threads.Names(), id) {
		return err
	}
	return Fault(err).With("nearest_ids", []string{OrchestratorID}).
		WithHint(`%s is an operation on threads: call rye_execute with item_id %s and parameters {"operation":%q} with what it takes.`, id, OrchestratorID, id)
}

// orchestrator is the older form of the operations on threads.
func (a *Actions) orchestrator(ctx context.Context, c Caller, r ExecuteRequest) (any, error) {
	if err := permit(c, capability("execute", item.Tool, OrchestratorID)); err != nil {
		return nil, err
	}
	if r.DryRun || r.Async || r.Thread == ThreadFork || len(forkOnly(r)) > 0 {
		return nil, tool.Faultf(tool.CodeUnsupported, "operations on threads run at once and take their own parameters only").
			WithHint("Leave everything but parameters out.")
	}
	name, params, err := r.Operation()
	if err != nil {
		return nil, err
	}
	return a.Threads.Operate(ctx, c, name, params)
}

// Operation is the operation on threads that a call of [OrchestratorID] names, and what that
// takes.
func (r ExecuteRequest) Operation() (name string, takes tool.Object, err error) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal(r.Parameters.Raw(), &params); err != nil {
		return "", nil, badArgument("parameters", err)
	}
	if raw, ok := params["operation"]; ok {
		if err := json.Unmarshal(raw, &name); err != nil {
			return "", nil, badArgument("operation", err)
		}
	}
	delete(params, "operation")
	rest, err := json.Marshal(params)
	return name, tool.Object(rest), err
}

// ThreadItems defines the three tools for the palette and for their items in
// the system space. They are not in the registry: Execute handles the first
// two, and the thread itself the third.
func (a *Actions) ThreadItems() ([]tool.Definition, error) {
	operations, err := a.Threads.Orchestrator()
	if err != nil {
		return nil, err
	}
	older, err := olderForms()
	return slices.Insert(older, 1, operations), err
}

// ThreadItemIDs are the ids of [Actions.ThreadItems].
func ThreadItemIDs() []string { return []string{ThreadDirectiveID, OrchestratorID, DirectiveReturnID} }

// olderForms defines those of the three that are no operations on threads.
func olderForms() ([]tool.Definition, error) {
	fork, err := tool.SchemaFor[ThreadDirectiveRequest]()
	return []tool.Definition{
		{
			ID: ThreadDirectiveID, Schema: fork,
			Description: "Run a directive in a thread of its own and wait for its result, or start it with async. " +
				`The same as rye_execute on the directive with thread "fork".`,
		},
		{
			ID:     DirectiveReturnID,
			Schema: json.RawMessage(directiveReturnSchema),
			Description: "Return the outputs of the directive and end the thread; only within a thread whose directive " +
				"declares outputs.",
		},
	}, err
}

// The arguments of directive_return depend on the directive, so its schema is open.
const directiveReturnSchema = `{"type":"object","properties":{"status":{"type":"string","enum":["success","completed","error"],` +
	`"description":"error when the work cannot be done; success and completed mean the same"},` +
	`"error_detail":{"type":"string","description":"with status error: what is missing or went wrong"}},` +
	`"additionalProperties":true}`
