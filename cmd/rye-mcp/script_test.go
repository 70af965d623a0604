package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/cli"
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
)

// TestMain makes rye-mcp a program that scripts run as real child processes,
// and mcp one that calls a tool of a server it starts over stdio.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"rye-mcp": func() { os.Exit(cli.Main(cli.OS(), os.Args[1:])) },
		"mcp":     func() { os.Exit(callTool(os.Args[1:])) },
	})
}

// TestScript runs testdata/script. A file model.yaml in a script is what the
// vendor's API answers: it is served on loopback in the Anthropic protocol, and
// ANTHROPIC_BASE_URL names it.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"capture":     captureField,
			"waitfile":    waitForFile,
			"killpid":     killPID,
			"corpus":      copyCorpus,
			"requests":    countRequests,
			"noleftovers": noLeftovers,
		},
	})
}

type modelKey struct{}

func setupScript(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("USER_SPACE", home)
	env.Setenv("RYE_CACHE_DIR", filepath.Join(env.WorkDir, "cache"))
	if os.Getenv("GOCOVERDIR") != "" {
		env.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR"))
	}
	source, err := os.ReadFile(filepath.Join(env.WorkDir, "model.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	script, err := scripted.Parse("model.yaml", source)
	if err != nil {
		return err
	}
	server, err := scripted.Serve(context.Background(), script, scripted.Options{})
	if err != nil {
		return err
	}
	env.Defer(func() { _ = server.Close() })
	env.Values[modelKey{}] = server
	env.Setenv("ANTHROPIC_BASE_URL", server.BaseURL())
	env.Setenv("ANTHROPIC_API_KEY", "test-key-that-must-not-leak")
	return nil
}

// capture NAME FIELD keeps a field of the JSON on standard output, such as
// thread_id or threads.0.thread_id, as a variable.
func captureField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME FIELD")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for part := range strings.SplitSeq(args[1], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			var i int
			_, err := fmt.Sscan(part, &i)
			ts.Check(err)
			if i >= len(v) {
				ts.Fatalf("capture: no element %d in %s", i, args[1])
			}
			value = v[i]
		}
	}
	if value == nil {
		ts.Fatalf("capture: no %s in %s", args[1], ts.ReadFile("stdout"))
	}
	text, ok := value.(string)
	if !ok {
		raw, err := json.Marshal(value)
		ts.Check(err)
		text = string(raw)
	}
	ts.Setenv(args[0], text)
}

// waitPatience bounds waits in scripts; a script that needs it has failed.
const waitPatience = 30 * time.Second

// waitfile PATH [TEXT] waits until a file exists and contains the text. Nothing
// tells when a file of another process changes, so it looks every 10 ms.
func waitForFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfile PATH [TEXT]")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(waitPatience)
	for {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && (len(args) == 1 || strings.Contains(string(content), args[1])) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("waitfile: %s did not come to contain %q; it has:\n%s", args[0], args[1:], content)
		}
	}
}

// requests N checks how many calls the model has received.
func countRequests(ts *testscript.TestScript, neg bool, args []string) {
	server, ok := ts.Value(modelKey{}).(*scripted.Server)
	if !ok || len(args) != 1 {
		ts.Fatalf("usage: requests N, in a script with model.yaml")
	}
	if got := fmt.Sprint(len(server.Requests())); (got == args[0]) == neg {
		ts.Fatalf("the model received %s requests, want %s (negated: %t)", got, args[0], neg)
	}
}

// callTool is the program mcp: mcp TOOL JSON. It starts rye-mcp --stdio in the
// working directory, calls the tool, prints the structured result, and fails
// when the result is an error. With -progress it prints progress messages to
// standard error.
func callTool(args []string) int {
	progress := len(args) > 0 && args[0] == "-progress"
	if progress {
		args = args[1:]
	}
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mcp [-progress] TOOL JSON")
		return 2
	}
	raw, isError, err := call(context.Background(), args[0], args[1], progress)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcp:", err)
		return 3
	}
	fmt.Println(raw)
	if isError {
		return 1
	}
	return 0
}

func call(ctx context.Context, tool, args string, progress bool) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*waitPatience)
	defer cancel()
	client := mcpclient.NewClient(transport.NewStdioWithOptions("rye-mcp", os.Environ(), []string{"--stdio"},
		transport.WithCommandStderrWriter(os.Stderr)))
	if progress {
		client.OnNotification(func(n mcp.JSONRPCNotification) {
			fmt.Fprintln(os.Stderr, n.Method, n.Params.AdditionalFields["message"])
		})
	}
	if err := client.Start(ctx); err != nil {
		return "", false, err
	}
	defer func() { _ = client.Close() }()
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "script", Version: "1"}
	if _, err := client.Initialize(ctx, hello); err != nil {
		return "", false, fmt.Errorf("initialize: %w", err)
	}
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, json.RawMessage(args)
	if progress {
		req.Params.Meta = &mcp.Meta{ProgressToken: "script"}
	}
	result, err := client.CallTool(ctx, req)
	if err != nil {
		return "", false, err
	}
	return sameInBoth(result)
}

// sameInBoth checks that structured content and text carry the same.
func sameInBoth(result *mcp.CallToolResult) (string, bool, error) {
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return "", false, err
	}
	if len(result.Content) != 1 {
		return "", false, fmt.Errorf("%d contents, want 1", len(result.Content))
	}
	text, ok := result.Content[0].(mcp.TextContent)
	if !ok {
		return "", false, fmt.Errorf("content is a %T, want text", result.Content[0])
	}
	var a, b any
	if err := errors.Join(json.Unmarshal(structured, &a), json.Unmarshal([]byte(text.Text), &b)); err != nil {
		return "", false, err
	}
	again, err := json.Marshal(b)
	if err != nil {
		return "", false, err
	}
	sorted, err := json.Marshal(a)
	if err != nil {
		return "", false, err
	}
	if string(again) != string(sorted) {
		return "", false, fmt.Errorf("text and structured content differ:\n%s\n%s", again, sorted)
	}
	return string(sorted), result.IsError, nil
}
