package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// startTime is how long a server may take to list its tools. Codex waits for 10 seconds.
const startTime = 10 * time.Second

// started is what was seen of a server.
type started struct {
	tools int
	took  time.Duration
}

// tryOut starts the server as the client will, and lists its tools. Of an entry in a
// project's file, which anybody may have written, only what this program puts into it is
// tried: anything else there is neither run nor set.
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
	server := mcpclient.Server{
		ID: found.Command, Transport: mcpclient.Stdio, Command: found.Command, Args: make([]string, len(found.Args)),
		Env: c.Environ(sys.Environ, found), Dir: project, Timeout: startTime,
	}
	for i, arg := range found.Args {
		if server.Args[i] = arg; c.Workspace() != "" {
			server.Args[i] = strings.ReplaceAll(arg, c.Workspace(), project)
		}
	}
	if path := onPath(sys, found.Command); path != "" {
		server.Command = path
	}
	connections, began := mcpclient.New(version()), sys.Now()
	defer connections.Close()
	tools, err := connections.Tools(ctx, server)
	if err != nil {
		why := err.Error()
		if failed, ok := errors.AsType[*mcpclient.FailedError](err); ok {
			why = strings.TrimSpace(failed.Err.Error() + "\n" + failed.Stderr)
		}
		return started{}, tool.Faultf(tool.CodeUnsupported, "%s would not get a server: %s does not start as it starts it: %s",
			c.Title, strings.Join(append([]string{found.Command}, found.Args...), " "), why).
			WithTry("rye-mcp doctor; nothing was written")
	}
	return started{tools: len(tools), took: sys.Now().Sub(began)}, nil
}

// onPath is where the PATH has a command that is named without a folder; empty where it
// has none.
func onPath(sys System, command string) string {
	if strings.ContainsRune(command, filepath.Separator) {
		return ""
	}
	for _, dir := range filepath.SplitList(sys.Getenv("PATH")) {
		path := filepath.Join(dir, command)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && isProgram(info) {
			return path
		}
	}
	return ""
}

func isProgram(info os.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

// versionOf asks another file of this program for its version; empty when it has none.
func versionOf(ctx context.Context, path string) string {
	said, err := exec.CommandContext(ctx, path, "version", "--json").Output()
	var v versionJSON
	if err != nil || json.Unmarshal(said, &v) != nil {
		return ""
	}
	return v.Version
}
