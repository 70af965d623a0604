package cli

import (
	"context"
	"os/exec"
	"strings"
	"syscall"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// startTime is how long a server may take to start and list its tools. Codex waits for 10
// seconds.
const startTime = 10 * time.Second

// started is what was seen of a server.
type started struct {
	tools   int
	version string
	took    time.Duration
}

// tryOut starts the server as the client will, and lists its tools. Of an entry in a
// project's file, which anybody may have written, only what this program puts into it is
// tried: what else stands there is neither run nor set.
func (in *installer) tryOut(ctx context.Context, c clients.Client, change clients.Change, found clients.Installed, done *installed) error {
	if in.flags.scope == scopeProject {
		alone, err := c.Put(nil, change)
		if err != nil {
			return err
		}
		if found, _, err = c.Find(alone, change.Name); err != nil {
			return err
		}
	}
	seen, err := startAs(ctx, in.sys, c, found, in.project)
	if err != nil {
		return err
	}
	done.Tools, done.StartedMS = seen.tools, seen.took.Milliseconds()
	return nil
}

// startAs starts the server of an entry as a client does: the same command, in the
// environment that it gives.
func startAs(ctx context.Context, sys System, c clients.Client, found clients.Installed, project string) (started, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	began := sys.Now()
	args := make([]string, len(found.Args))
	for i, arg := range found.Args {
		if args[i] = arg; c.Workspace() != "" {
			args[i] = strings.ReplaceAll(arg, c.Workspace(), project)
		}
	}
	var said process.Tail
	stdio := transport.NewStdioWithOptions(found.Command, nil, args,
		transport.WithCommandFunc(func(ctx context.Context, command string, _, args []string) (*exec.Cmd, error) {
			cmd := exec.CommandContext(ctx, command, args...)
			cmd.Env, cmd.Dir = c.Environ(sys.Environ, found), project
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C of the terminal is for this program
			return cmd, nil
		}), transport.WithCommandStderrWriter(&said))
	client := mcpclient.NewClient(stdio)
	seen, err := greet(ctx, client)
	_ = client.Close() // it has told all it was asked
	if err != nil {
		return seen, tool.Faultf(tool.CodeUnsupported, "%s would not get a server: %s does not start as it starts it: %w%s",
			c.Title, strings.Join(append([]string{found.Command}, found.Args...), " "), err, lastWords(&said)).
			WithTry("rye-mcp doctor; nothing was written")
	}
	seen.took = sys.Now().Sub(began)
	return seen, nil
}

func greet(ctx context.Context, client *mcpclient.Client) (started, error) {
	if err := client.Start(ctx); err != nil {
		return started{}, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "rye-mcp install", Version: version()}
	answer, err := client.Initialize(ctx, hello)
	if err != nil {
		return started{}, err
	}
	list, err := client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return started{}, err
	}
	return started{tools: len(list.Tools), version: answer.ServerInfo.Version}, nil
}

// lastWords are what a server that failed has said last.
func lastWords(said *process.Tail) string {
	text := strings.TrimSpace(said.String())
	if text == "" {
		return ""
	}
	return "\n" + text
}
