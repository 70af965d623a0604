package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// caller is where the client of a script runs.
type caller struct {
	dir            string // empty: the working directory
	env            []string
	stdout, stderr io.Writer
}

// onOwn is a client that is a process of its own.
func onOwn() caller { return caller{env: os.Environ(), stdout: os.Stdout, stderr: os.Stderr} }

// lockedBuffer is written by the server and by the client.
type lockedBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

// take is what was written since the last time.
func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.Reset()
	return b.Builder.String()
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.String()
}

// callInScript is call, the program mcp as a command of scripts: it spares them a process, as only
// the server is one. In the background, and in shells, the program is called.
func callInScript(ts *testscript.TestScript, neg bool, args []string) {
	var said lockedBuffer
	at := callerIn(ts, &said)
	code, ran := sessionOf(ts).callTool(at, args)
	if !ran {
		code = callTool(at, args)
	}
	_, _ = io.WriteString(ts.Stderr(), said.String())
	if (code != 0) != neg {
		ts.Fatalf("mcp ended with %d", code)
	}
}

// callerIn is a client that is the script's.
func callerIn(ts *testscript.TestScript, stderr io.Writer) caller {
	// The script's own variables; testscript tells them one by one only.
	all := reflect.ValueOf(ts).Elem().FieldByName("env")
	at := caller{dir: ts.MkAbs("."), env: make([]string, all.Len()), stdout: ts.Stdout(), stderr: stderr}
	for i := range at.env {
		at.env[i] = all.Index(i).String()
	}
	return at
}

// callTool is the program mcp: mcp [-progress] [-log FILE] [-answer ANSWER] TOOL JSON. It starts
// rye-mcp --stdio in the working directory, calls the tool, prints the
// structured result, and fails when the result is an error. With -progress it
// prints progress messages to standard error; with -log the server writes its
// log, whose first line names its process, to a file; with -answer the client
// asks a person, whose answer to everything is the JSON, decline or cancel.
func callTool(at caller, args []string) int {
	flags := flag.NewFlagSet("mcp", flag.ContinueOnError)
	flags.SetOutput(at.stderr)
	progress := flags.Bool("progress", false, "print progress messages")
	log := flags.String("log", "", "log file of the server")
	answer := flags.String("answer", "", "what the person answers")
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		_, _ = fmt.Fprintln(at.stderr, "usage: mcp [-progress] [-log FILE] [-answer ANSWER] TOOL JSON")
		return 2
	}
	server := []string{"--stdio"}
	if *log != "" {
		server = append(server, "--log-file", *log)
	}
	var options []mcpclient.ClientOption
	if *answer != "" {
		options = append(options, mcpclient.WithElicitationHandler(person{*answer, at.stderr}))
	}
	return at.tell(at.call(context.Background(), server, flags.Arg(0), flags.Arg(1), *progress, options...))
}

// tell prints an answer, and is the exit code for it.
func (at caller) tell(raw string, isError bool, err error) int {
	if err != nil {
		_, _ = fmt.Fprintln(at.stderr, "mcp:", err)
		return 3
	}
	_, _ = fmt.Fprint(at.stdout, raw)
	if isError {
		return 1
	}
	return 0
}

func (at caller) call(
	ctx context.Context, server []string, name, args string, progress bool, options ...mcpclient.ClientOption,
) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*waitPatience)
	defer cancel()
	return at.callWith(ctx, at.client(server, options...), name, args, progress)
}

// client is one of a server that it starts.
func (at caller) client(server []string, options ...mcpclient.ClientOption) *mcpclient.Client {
	return mcpclient.NewClient(transport.NewStdioWithOptions("rye-mcp", nil, server, transport.WithCommandStderrWriter(at.stderr),
		transport.WithCommandFunc(func(_ context.Context, name string, _ []string, args []string) (*exec.Cmd, error) {
			cmd := exec.Command(name, args...)
			cmd.Dir, cmd.Env = at.dir, at.env
			return cmd, nil
		})), options...)
}

// callWith starts a client, calls a tool, and closes the client.
func (at caller) callWith(ctx context.Context, client *mcpclient.Client, name, args string, progress bool) (string, bool, error) {
	if progress {
		client.OnNotification(func(n mcp.JSONRPCNotification) {
			told := n.Params.AdditionalFields
			_, _ = fmt.Fprintf(at.stderr, "%s %v of %v: %v\n", n.Method, told["progress"], told["total"], told["message"])
		})
	}
	if err := client.Start(ctx); err != nil {
		return "", false, err
	}
	defer func() { _ = client.Close() }()
	if err := sayHello(ctx, client); err != nil {
		return "", false, err
	}
	var meta *mcp.Meta
	if progress {
		meta = &mcp.Meta{ProgressToken: "script"}
	}
	return callOn(ctx, client, name, args, meta)
}

// callOn calls a tool of a server that has been said hello to.
func callOn(ctx context.Context, client *mcpclient.Client, name, args string, meta *mcp.Meta) (string, bool, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments, req.Params.Meta = name, json.RawMessage(args), meta
	result, err := client.CallTool(ctx, req)
	if err != nil {
		return "", false, err
	}
	if err := fits(name, result); err != nil {
		return "", false, err
	}
	return sameInBoth(result)
}

// fits checks a result against what the tool is documented to return.
func fits(name string, result *mcp.CallToolResult) error {
	schemas, known := handler.Schemas()[name]
	if !known {
		return nil // the script calls a tool that there is not
	}
	output, err := schemas.Output()
	if err != nil {
		return err
	}
	structured, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return err
	}
	if err := tool.Validate(output, structured); err != nil {
		return fmt.Errorf("the result of %s does not fit its output schema: %w\n%s", name, err, structured)
	}
	return nil
}

// sayHello is the first thing that a client does.
func sayHello(ctx context.Context, client *mcpclient.Client) error {
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	if _, err := client.Initialize(ctx, hello); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return nil
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
	if !reflect.DeepEqual(a, b) {
		return "", false, fmt.Errorf("text and structured content differ:\n%s\n%s", text.Text, structured)
	}
	var sorted strings.Builder
	enc := json.NewEncoder(&sorted)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return "", false, err
	}
	return sorted.String(), result.IsError, nil
}
