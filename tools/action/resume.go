package action

import (
	"context"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// resume resumes a thread that has ended, as resume_thread does.
func (a *Actions) resume(ctx context.Context, c Caller, r ExecuteRequest) (any, error) {
	if err := permit(c, capability("execute", item.Tool, OrchestratorID)); err != nil {
		return nil, err
	}
	if r.DryRun || r.Thread == ThreadInline || r.WaitSeconds != nil || r.RequestKey != "" || r.Workspace != "" {
		return nil, tool.Faultf(tool.CodeUnsupported, "a thread is resumed at once and not waited for: dry_run, inline, wait_seconds, workspace and request_key have no effect").
			WithHint("Leave them out; wait_threads waits for the new thread.")
	}
	if r.ItemID != "" {
		if err := a.resumesDirective(ctx, r); err != nil {
			return nil, err
		}
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(r.Parameters.Raw(), &given); err != nil {
		return nil, badArgument("parameters", err)
	}
	for name, value := range map[string]any{"thread_id": r.ResumeThreadID, "limits": r.Limits, "model": r.Model} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if string(raw) != "null" && string(raw) != `""` {
			given[name] = raw
		}
	}
	params, err := tool.ObjectOf(given)
	if err != nil {
		return nil, err
	}
	return a.Threads.Operate(ctx, c, "resume_thread", params)
}

// resumesDirective refuses an item that is not what the thread runs.
func (a *Actions) resumesDirective(ctx context.Context, r ExecuteRequest) error {
	runs, err := a.Threads.Runs(ctx, r.ResumeThreadID)
	if err != nil {
		return err
	}
	if runs != r.ItemID {
		return tool.Faultf(tool.CodeBadArguments, "thread %s runs %s and not %s; it goes on with what it runs", r.ResumeThreadID, runs, r.ItemID).
			WithHint("Leave item_id out.")
	}
	return nil
}
