package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// decoded counts how often a [countedText] is decoded.
var decoded atomic.Int32

type countedText string

func (c *countedText) UnmarshalJSON(raw []byte) error {
	decoded.Add(1)
	return json.Unmarshal(raw, (*string)(c))
}

type praiseInput struct {
	ThreadID thread.ID   `json:"thread_id" alias:"id" jsonschema:"whom to praise"`
	Words    countedText `json:"words" jsonschema:"how to praise it"`
	Times    int         `json:"times,omitempty" minimum:"1" default:"2" jsonschema:"how often"`
}

type praised struct {
	Success bool   `json:"success"`
	Said    string `json:"said"`
	Inside  bool   `json:"inside"`
}

// praise is an operation that nothing but its entry knows.
var praise = operation.Operation[praiseInput, praised]{
	Name: "praise_thread", Title: "Praise a thread", Group: operation.Threads, Effect: operation.Looks,
	Doc: "Praise a thread that has done well. Costs nothing and does not wait.",
	Run: func(ctx context.Context, c *control.Controller, by action.Caller, in praiseInput) (praised, error) {
		if _, err := c.View.Status(ctx, in.ThreadID); err != nil {
			return praised{}, err
		}
		return praised{true, strings.Repeat(string(in.Words), in.Times) + ", " + string(in.ThreadID), by.InThread}, nil
	},
}

type projectFunc func(path string) *handler.Project

func (f projectFunc) Several() bool { return true }

func (f projectFunc) Holding(context.Context, []thread.ID, func(string) bool) (*handler.Project, error) {
	return nil, nil //nolint:nilnil // threads lead nowhere
}

func (f projectFunc) Project(_ context.Context, path string) (*handler.Project, error) {
	return f(path), nil
}

// An operation that stands in a table, and nowhere else, is an MCP tool, an
// operation of threads and a command, and each decodes a call of it once.
func TestOperationOfATable(t *testing.T) {
	t.Parallel()
	sys, p := testProject(t)
	rec := register(t, p, "work", 1000)
	table := operation.NewTable(praise.Entry())
	p.actions.Threads = operation.Actions{Threads: control.Threads{Controller: p.control}, Table: table}

	once := func(surface, answer, want string) {
		t.Helper()
		if n := decoded.Swap(0); n != 1 || !strings.Contains(answer, want) {
			t.Errorf("%s decodes %d times and answers %s; want %s", surface, n, answer, want)
		}
	}
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	var path string
	handler.Register(s, projectFunc(func(given string) *handler.Project {
		path = given
		return &handler.Project{Path: p.resolver.Roots().Project, Actions: p.actions, Control: p.control, Notices: p.notices}
	}), handler.Groups(), table)
	client := servertest.Start(t, s)
	tools := client.Tools()
	at := slices.IndexFunc(tools, func(told servertest.Tool) bool { return told.Name == "praise_thread" })
	if at < 0 || len(tools) != 5 || tools[at].Title != praise.Title || strings.Contains(string(tools[at].InputSchema), `"project_path":`) {
		t.Fatalf("the tools are %+v", tools)
	}
	once("the MCP tool", string(client.Call("praise_thread", map[string]any{"id": rec.ThreadID, "words": "good", "project_path": p.resolver.Roots().Project}).JSON),
		`"said":"goodgood, work-1000","inside":false`)
	if path != p.resolver.Roots().Project {
		t.Errorf("the project is %q, want %q", path, p.resolver.Roots().Project)
	}
	if r := client.Call("praise_thread", map[string]any{"id": rec.ThreadID, "words": "good", "project_pth": p.resolver.Roots().Project}); !strings.Contains(string(r.JSON), `did you mean \"project_path`) {
		t.Errorf("misspelt: %s", r.JSON)
	}
	decoded.Store(0)

	orchestrator, err := p.actions.Threads.Orchestrator()
	if err != nil || !strings.Contains(string(orchestrator.Schema), `"enum":["praise_thread"]`) ||
		!strings.Contains(string(orchestrator.Schema), `praise_thread(thread_id words times?)`) {
		t.Errorf("rye/agent/threads/orchestrator takes %s, %v", orchestrator.Schema, err)
	}
	inside := action.Caller{InThread: true, Allow: func(string) error { return nil }}
	got, err := p.actions.Execute(t.Context(), inside, action.ExecuteRequest{
		ItemID: action.OrchestratorID, Parameters: []byte(`{"operation":"praise_thread","thread_id":"work-1000","words":"fine","times":1}`),
	})
	answer, _ := json.Marshal(got)
	once("the operation of threads", string(answer), `"said":"fine, work-1000","inside":true`)
	if err != nil {
		t.Error(err)
	}

	var out bytes.Buffer
	sys.Stdout = &out
	cmd := newThreadsCallCommand(sys, &options{project: p.resolver.Roots().Project}, table)
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"praise_thread", "thread_id=wor", "words=<b>", "times=3"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Error(err)
	}
	once("the command", out.String(), `"said": "<b><b><b>, work-1000"`)
	out.Reset()
	cmd.SetArgs([]string{"praise_thread", "--help"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), praise.Doc) || !strings.Contains(out.String(), "how to praise it") {
		t.Errorf("its help: %s, %v", out.String(), err)
	}
}

// TestAttackCallFromAShell: the command of a thread cancels, kills or answers a thread that it has not started, through rye-mcp threads call.
// Each is refused, as the thread's own tools would refuse it.
func TestAttackCallFromAShell(t *testing.T) {
	t.Parallel()
	_, p := testProject(t)
	dir := p.resolver.Roots().Project
	register(t, p, "self", 1000)
	register(t, p, "stranger", 1001)
	inside := testSystem(dir, map[string]string{"USER_SPACE": dir, process.ParentVariable: "self-1000"})
	inside.Stdout = io.Discard
	for _, args := range [][]string{
		{"cancel_thread", "thread_id=stranger"}, {"kill_thread", "thread_id=stranger"},
		{"cancel_thread", "thread_id=self"}, {"approve_thread", "thread_id=stranger", "decision=stop"},
	} {
		cmd := newThreadsCallCommand(inside, &options{project: dir}, operation.All())
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != tool.CodePermissionDenied {
			t.Errorf("%v: %v", args, err)
		}
	}
}
