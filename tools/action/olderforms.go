package action

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
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
	DirectiveID    string        `json:"directive_id,omitempty" jsonschema:"id of the directive to run in a thread"`
	DirectiveName  string        `json:"directive_name,omitempty" jsonschema:"another name of directive_id"`
	Directive      string        `json:"directive,omitempty" jsonschema:"another name of directive_id"`
	Inputs         tool.Object   `json:"inputs,omitempty" alias:"parameters,params" jsonschema:"inputs of the directive"`
	Async          bool          `json:"async,omitempty" jsonschema:"do not wait: answer with the thread id at once"`
	Model          string        `json:"model,omitempty" jsonschema:"model or tier instead of the directive's own choice"`
	LimitOverrides item.LimitSet `json:"limit_overrides,omitempty" alias:"limits" jsonschema:"limits: turns, tokens, spend (US dollars), duration_seconds, spawns, depth"`
	WaitSeconds    *float64      `json:"wait_seconds,omitempty" alias:"timeout" minimum:"0" jsonschema:"longest wait; after it the thread goes on"`
	RequestKey     string        `json:"request_key,omitempty" jsonschema:"a key of your own: repeating a call with it returns the same thread"`
	ParentThreadID thread.ID     `json:"parent_thread_id,omitempty" jsonschema:"parent of the thread; not from within a thread, which is the parent itself"`
}

// threadDirective is the older form of a fork.
func (a *Actions) threadDirective(ctx context.Context, c Caller, r ExecuteRequest) (any, error) {
	raw, err := tool.Accepter[ThreadDirectiveRequest]()(r.Parameters.Raw())
	if err != nil {
		return nil, err
	}
	var p ThreadDirectiveRequest
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, badArgument("parameters", err)
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
	id, err := p.directive()
	if err != nil {
		return nil, err
	}
	fork := ExecuteRequest{
		ItemType: string(item.Directive), ItemID: id, Parameters: p.Inputs, DryRun: r.DryRun, Thread: ThreadFork,
		Async:       p.Async || r.Async,
		Model:       cmp.Or(p.Model, r.Model),
		WaitSeconds: cmp.Or(p.WaitSeconds, r.WaitSeconds),
		RequestKey:  cmp.Or(p.RequestKey, r.RequestKey),
	}
	if fork.LimitOverrides = p.LimitOverrides; fork.LimitOverrides == nil {
		fork.LimitOverrides = r.LimitOverrides
	}
	return a.executeItem(ctx, c, fork, p.ParentThreadID)
}

// directive is the one id that the three spellings give.
func (p ThreadDirectiveRequest) directive() (string, error) {
	given := slices.DeleteFunc([]string{p.DirectiveID, p.DirectiveName, p.Directive}, func(s string) bool { return s == "" })
	switch ids := slices.Compact(given); len(ids) {
	case 0:
		return "", tool.Faultf(tool.CodeBadArguments, `missing property "directive_id"`)
	case 1:
		return ids[0], nil
	default:
		return "", tool.Faultf(tool.CodeBadArguments, "several directives are named: %s", strings.Join(ids, ", ")).
			WithHint("Give directive_id only.")
	}
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
	var params map[string]json.RawMessage
	if err := json.Unmarshal(r.Parameters.Raw(), &params); err != nil {
		return nil, badArgument("parameters", err)
	}
	var operation string
	if raw, ok := params["operation"]; ok {
		if err := json.Unmarshal(raw, &operation); err != nil {
			return nil, badArgument("operation", err)
		}
	}
	known := a.Threads.Operations()
	if !slices.Contains(known, operation) {
		return nil, tool.Faultf(tool.CodeBadArguments, "operation %q is not known; valid are %s", operation, strings.Join(known, ", ")).
			With("valid_operations", known)
	}
	delete(params, "operation")
	rest, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return a.Threads.Operate(ctx, c, operation, tool.Object(rest))
}

// ThreadItems defines the three tools for the palette and for their items in
// the system space. They are not in the registry: Execute handles the first
// two, and the thread itself the third.
func ThreadItems() ([]tool.Definition, error) {
	fork, err := tool.SchemaFor[ThreadDirectiveRequest]()
	if err != nil {
		return nil, err
	}
	return []tool.Definition{
		{
			ID: ThreadDirectiveID, Schema: fork,
			Description: "Run a directive in a thread of its own and wait for its result, or start it with async. " +
				`The same as rye_execute on the directive with thread "fork".`,
		},
		{
			ID:     OrchestratorID,
			Schema: json.RawMessage(orchestratorSchema),
			Description: "Operate on threads: wait for them, look at them, stop them, collect their results. " +
				"An unknown operation is answered with the list of those there are.",
		},
		{
			ID:     DirectiveReturnID,
			Schema: json.RawMessage(directiveReturnSchema),
			Description: "Return the outputs of the directive and end the thread; only within a thread whose directive " +
				"declares outputs.",
		},
	}, nil
}

// The parameters of these two depend on the operation and on the directive, so
// their schemas are open. The orchestrator's names what its operations take
// most, so that a model need not look it up; each operation checks its own.
const (
	orchestratorSchema = `{"type":"object","properties":{` +
		`"operation":{"type":"string","description":"wait_threads, get_status, get_budget, list_active, list_threads, aggregate_results, read_transcript, cancel_thread, kill_thread, approve_thread, resume_thread, get_chain or chain_search; its parameters stand beside it"},` +
		`"thread_ids":{"type":"array","items":{"type":"string"},"description":"of wait_threads and aggregate_results"},` +
		`"thread_id":{"type":"string","description":"of all that are about one thread"},` +
		`"message":{"type":"string","description":"of resume_thread: what to tell a thread below you that has ended and is to go on"},` +
		`"query":{"type":"string","description":"of chain_search: text in the transcripts of a thread and of those that it carries on or that carry it on"},` +
		`"mode":{"type":"string","enum":["all","any"],"description":"of wait_threads: until all have ended (default) or any one"},` +
		`"timeout":{"type":"number","minimum":0,"description":"of wait_threads: longest wait in seconds"},` +
		`"decision":{"type":"string","enum":["raise","finish","stop"],"description":"of approve_thread: what a thread below you does that waits because it has reached a limit"},` +
		`"limits":{"type":"object","description":"of approve_thread with raise: new values, within your own limits"}},` +
		`"required":["operation"],"additionalProperties":true}`
	directiveReturnSchema = `{"type":"object","properties":{"status":{"type":"string","enum":["success","completed","error"],` +
		`"description":"error when the work cannot be done; success and completed mean the same"},` +
		`"error_detail":{"type":"string","description":"with status error: what is missing or went wrong"}},` +
		`"additionalProperties":true}`
)
