package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// demoClient is an MCP client of a server it has started.
type demoClient struct {
	mcp   *mcpclient.Client
	tools int
	log   *os.File
}

// connect starts the server as an editor would and greets it.
func (d *demo) connect(ctx context.Context) (*demoClient, error) {
	log, err := os.Create(filepath.Join(d.dir, "server.log"))
	if err != nil {
		return nil, err
	}
	stdio := transport.NewStdioWithOptions(d.executable(), nil, []string{"--stdio", "--project", d.project()},
		transport.WithCommandFunc(func(ctx context.Context, command string, _, args []string) (*exec.Cmd, error) {
			cmd := exec.CommandContext(ctx, command, args...)
			cmd.Env, cmd.Dir = d.environ(), d.project()
			// Ctrl-C of the terminal is for the demo, which tells the server.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			return cmd, nil
		}), transport.WithCommandStderrWriter(log))
	c := &demoClient{mcp: mcpclient.NewClient(stdio), log: log}
	if err := c.greet(ctx); err != nil {
		return nil, errors.Join(demoError("start", err), c.Close())
	}
	return c, nil
}

func (c *demoClient) greet(ctx context.Context) error {
	if err := c.mcp.Start(ctx); err != nil {
		return err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "rye-mcp demo", Version: version()}
	if _, err := c.mcp.Initialize(ctx, hello); err != nil {
		return err
	}
	list, err := c.mcp.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return err
	}
	c.tools = len(list.Tools)
	return nil
}

// call calls a tool and decodes its structured result.
func (c *demoClient) call(ctx context.Context, name string, args map[string]any, out any) error {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = name, args
	result, err := c.mcp.CallTool(ctx, req)
	if err != nil {
		return demoError(name, err)
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return demoError(name, err)
	}
	if result.IsError {
		return demoError(name, toolError(raw))
	}
	return json.Unmarshal(raw, out)
}

// toolError is the failure object of a tool as the fault it was made from, so
// that a person reads it like any other.
func toolError(raw []byte) error {
	var body struct {
		Code  tool.Code `json:"code"`
		Error string    `json:"error"`
		Hint  string    `json:"hint"`
	}
	if err := json.Unmarshal(raw, &body); err != nil || body.Error == "" {
		return errors.New(string(raw))
	}
	return &tool.Fault{Code: body.Code, Message: body.Error, Hint: body.Hint}
}

// Close ends the server by closing its input.
func (c *demoClient) Close() error { return errors.Join(c.mcp.Close(), c.log.Close()) }
