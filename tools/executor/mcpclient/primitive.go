package mcpclient

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Primitive is the primitive [chain.MCP]: a tool of it is one of a server's.
type Primitive struct {
	*Connections

	// Confine bounds what the command of a server can reach, before it is started;
	// nil: nothing does.
	Confine func(context.Context, *chain.Plan, *process.Command) error
}

var _ chain.Primitive = Primitive{}

// Close ends the connections.
func (p Primitive) Close() error {
	p.Connections.Close()
	return nil
}

// Check implements [chain.Primitive].
func (p Primitive) Check(c *chain.Chain) (notes []string, err error) {
	_, err = toolName(c.Tool(), c.Config)
	return nil, err
}

// toolName is the name that the tool has at its server.
func toolName(of *chain.Element, config map[string]any) (string, error) {
	if name, _ := config["tool_name"].(string); name != "" {
		return name, nil
	}
	return "", tool.Faultf(tool.CodeInvalidItem, "%s names no config.tool_name, the tool of the server", of.ID).
		With("path", of.Path).WithHint("rye/mcp/connect lists the tools of a server.")
}

// Run calls the tool of the server that the plan names, and returns a [*Result].
func (p Primitive) Run(ctx context.Context, plan *chain.Plan) (any, error) {
	name, err := toolName(plan.Chain.Tool(), plan.Config)
	if err != nil {
		return nil, err
	}
	s, err := p.ServerOf(plan)
	if err != nil {
		return nil, err
	}
	result, err := p.Call(ctx, s, name, plan.Params)
	if err != nil {
		return nil, Fault(err)
	}
	if result.IsError {
		f := tool.Faultf(tool.CodeToolFailed, "%s of the MCP server %s has failed", name, s.ID).With("text", result.Text)
		if result.Structured != nil {
			f = f.With("structured", result.Structured)
		}
		return nil, f
	}
	return result, nil
}

// ServerOf is how the server of a plan is reached: the one that the tool names, or the
// tool's own configuration.
func (p Primitive) ServerOf(plan *chain.Plan) (Server, error) {
	id, config := plan.Chain.Tool().ID, plan.Config
	if plan.Chain.Server != nil {
		id, config = plan.Chain.Server.ID, plan.Server
	}
	s, err := Declared(id, config, plan.Environ, plan.Dir)
	if err != nil {
		return s, tool.Faultf(tool.CodeInvalidItem, "the MCP server %s: %w", id, err)
	}
	if plan.Timeout > 0 {
		s.Timeout = plan.Timeout
	}
	if p.Confine != nil {
		s.prepare = func(ctx context.Context, c *process.Command) error { return p.Confine(ctx, plan, c) }
	}
	return s, nil
}

// Fault says why a server was of no use. Its words and output are foreign text, and
// stand apart.
func Fault(err error) error {
	failed, ok := errors.AsType[*FailedError](err)
	if !ok {
		return err
	}
	f := tool.Faultf(tool.CodeToolFailed, "%w", err).With("server", failed.ServerID)
	if errors.Is(err, errTimeout) {
		f.Code = tool.CodeTimeout
	}
	if failed.Stderr != "" {
		f = f.With("stderr", failed.Stderr)
	}
	if failed.Said != "" {
		f = f.With("said", failed.Said)
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		f = f.With("said", refused.Said)
		if refused.Code == mcp.METHOD_NOT_FOUND || refused.Code == mcp.INVALID_PARAMS {
			f = f.WithHint("The server may have changed its tools: run rye/mcp/discover for %s.", failed.ServerID)
		}
	}
	return f
}
