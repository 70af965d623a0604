package loop

import (
	"context"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxDataBytes is the longest result of a tool run that is stored in its row.
const maxDataBytes = 64 << 10

// runTool runs a tool in the background, as its own thread without a model.
func (r *run) runTool(ctx context.Context) ended {
	doing := "running the tool " + r.meta.Directive
	grant := permission.Grant{Own: r.meta.Own(), Ceiling: r.meta.Ceiling}
	if denied := grant.Missing(permission.Required(permission.Execute, item.Tool, r.meta.Directive)); denied != nil {
		return ended{err: tool.Faultf(tool.CodePermissionDenied, "%w", denied), doing: doing}
	}
	var args json.RawMessage
	if r.meta.Inputs != nil {
		var err error
		if args, err = json.Marshal(r.meta.Inputs); err != nil {
			return ended{err: err, doing: doing}
		}
	}
	result, err := r.await(ctx, r.meta.Directive, func() (any, error) {
		return r.Executor.RunItem(ctx, r.Resolver, r.meta.Directive, executor.Call{Env: r.env(), Args: args, Warn: r.warn})
	})
	if err != nil {
		return ended{err: action.ToolFault(r.meta.Directive, err), doing: doing}
	}
	text := encode(result)
	if len(text) > maxDataBytes || storable(json.RawMessage(text)) != nil {
		return ended{result: r.keepFor(text)}
	}
	return ended{data: json.RawMessage(text)}
}

// storable says why a value cannot stand in thread.json, whose canonical form
// holds no integer that a double would round.
func storable(v any) error {
	_, err := sign.EncodeSigned(map[string]any{"value": v}, nil)
	return err
}
