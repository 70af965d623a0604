package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// byPage is who answers and steers by the page, in the words of records.
const byPage = "a person, on the page"

// unfit are operations that a page does not need: it waits by looking, and notes are
// from threads to threads.
var unfit = []string{operation.WaitThreads.Name, operation.SendNote.Name}

// offered are the names of the operations that a page may call.
func offered(t *operation.Table) []string {
	return slices.DeleteFunc(slices.Clone(t.Names()), func(name string) bool { return slices.Contains(unfit, name) })
}

// caller is the person at the page. Nobody waits for what a page starts: it looks.
func caller(project *Project) action.Caller {
	return action.Caller{
		Env: tool.Env{Project: project.Path, TraceID: uuid.NewString()}, Person: true, By: byPage, Detached: true,
	}
}

// call runs an operation of the table with its own parameters.
func (p *Page) call(ctx context.Context, c *call) (any, error) {
	name := c.r.PathValue("operation")
	c.operation, c.about = "call "+clip(name), named(c.body)
	table := operation.All()
	if !slices.Contains(offered(table), name) {
		return nil, refuse(http.StatusNotFound, tool.CodeNotFound, "the page has no operation %q", clip(name))
	}
	call, err := table.Decode(name, c.body)
	if err != nil {
		return nil, err
	}
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	return call.Run(ctx, project.Control, c.caller(project))
}

// maxNamed is how many threads the log names of one call.
const maxNamed = 10

// named are the threads that parameters name, for the log.
func named(params json.RawMessage) string {
	var in struct {
		ThreadID  json.RawMessage `json:"thread_id"`
		ThreadIDs json.RawMessage `json:"thread_ids"`
	}
	if json.Unmarshal(params, &in) != nil {
		return ""
	}
	var ids []string
	for _, raw := range []json.RawMessage{in.ThreadID, in.ThreadIDs} {
		var one string
		var several []string
		switch {
		case json.Unmarshal(raw, &one) == nil && one != "":
			ids = append(ids, one)
		case json.Unmarshal(raw, &several) == nil:
			ids = append(ids, several...)
		}
	}
	text := strings.Join(ids[:min(len(ids), maxNamed)], " ")
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// StartRequest is the body of start: a directive with what it runs under.
type StartRequest struct {
	Directive  string        `json:"directive"`
	Inputs     tool.Object   `json:"inputs,omitempty"`
	Model      string        `json:"model,omitempty"`
	Limits     item.LimitSet `json:"limits,omitempty"`
	Workspace  string        `json:"workspace,omitempty"`
	RequestKey string        `json:"request_key,omitempty"`
	DryRun     bool          `json:"dry_run,omitempty"`
}

// start starts a thread for a directive, or tells what that would be.
func (p *Page) start(ctx context.Context, c *call) (any, error) {
	var in StartRequest
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	c.about = clip(in.Directive)
	if in.Directive == "" {
		return nil, tool.Faultf(tool.CodeBadArguments, "directive is missing").WithHint("Choose one of those that are listed.")
	}
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	result, err := project.Actions.Execute(ctx, c.caller(project), action.ExecuteRequest{
		ItemType: string(item.Directive), ItemID: in.Directive, Parameters: in.Inputs, Thread: action.ThreadFork, Async: !in.DryRun,
		DryRun: in.DryRun, Model: in.Model, Limits: in.Limits, Workspace: in.Workspace, RequestKey: in.RequestKey,
	})
	if started, ok := result.(view.Started); ok && err == nil {
		c.about += " as thread " + string(started.ThreadID)
	}
	return result, err
}

// planDelete tells what would go with a thread. A deletion that it has shown can be
// confirmed with delete_thread for an hour.
func (p *Page) planDelete(ctx context.Context, c *call) (any, error) {
	var in struct {
		Force bool `json:"force,omitempty"`
	}
	if len(c.body) > 0 {
		if err := decode(c.body, &in); err != nil {
			return nil, err
		}
	}
	id, err := parseID(c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	return project.Control.Tidy.Delete(ctx, tidy.DeleteRequest{ThreadID: id, Force: in.Force, By: c.caller(project).By})
}
