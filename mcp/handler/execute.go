package handler

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

//go:embed execute.md
var executeText string

type executeInput struct{ action.ExecuteRequest }

func (in executeInput) projectPath() string { return in.ProjectPath }

// executeOutput documents the shapes of a result; which fields are there
// depends on the kind of item and on thread, async and dry_run.
type executeOutput struct {
	Success bool `json:"success"`
	// A forked directive, or a tool run in the background.
	ThreadID  thread.ID       `json:"thread_id,omitempty" jsonschema:"the thread that was started"`
	Directive string          `json:"directive,omitempty"`
	Status    thread.State    `json:"status,omitempty" jsonschema:"state of the thread"`
	Result    string          `json:"result,omitempty" jsonschema:"final text of the thread"`
	Outputs   map[string]any  `json:"outputs,omitempty" jsonschema:"outputs of the thread"`
	Error     string          `json:"error,omitempty" jsonschema:"why it did not complete"`
	Problem   *thread.Problem `json:"problem,omitempty"`
	Cost      *thread.Cost    `json:"cost,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
	PID       int             `json:"pid,omitempty"`
	Next      string          `json:"next,omitempty" jsonschema:"what to call next"`
	// An item carried out inline.
	Type           string `json:"type,omitempty" jsonschema:"kind of the item"`
	ItemID         string `json:"item_id,omitempty"`
	Space          string `json:"space,omitempty" jsonschema:"project, user or system"`
	YourDirections string `json:"your_directions,omitempty" jsonschema:"what to do with body"`
	Body           string `json:"body,omitempty" jsonschema:"text of an inline directive"`
	Data           any    `json:"data,omitempty" jsonschema:"result of a tool, or metadata and content of knowledge"`
	// A dry run.
	Plan map[string]any `json:"plan,omitempty"`

	sent any
}

// MarshalJSON writes the result as it came.
func (o executeOutput) MarshalJSON() ([]byte, error) { return json.Marshal(o.sent) }

func addExecute(s *server.Server, projects Projects) {
	add(s, projects, "rye_execute", executeText, server.Annotations{
		Title: "Run a directive, tool or knowledge item", Destructive: true, OpenWorld: true,
	}, func(ctx context.Context, p *Project, call server.Call, in executeInput) (executeOutput, error) {
		in.ProjectPath = "" // it has been followed
		result, err := p.Actions.Execute(ctx, caller(p, call), in.ExecuteRequest)
		return executeOutput{sent: result}, err
	})
}
