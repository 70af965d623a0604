// Package handler holds the MCP tools, one function each: typed input, typed
// output, a description for models in a file beside it, and a handler that only
// translates between the two and the rooms to the right.
package handler

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Project is what the tools work on.
type Project struct {
	Path    string
	Actions *action.Actions
	Control *control.Controller
	// Notices are what holds for the whole project and its user should know.
	Notices func() []string
}

// Projects finds the project of a call: the one it names, else the server's,
// else the client's single root, else the working directory.
type Projects interface {
	Project(ctx context.Context, path string) (*Project, error)
}

// inProject is part of every input.
type inProject struct {
	ProjectPath string `json:"project_path,omitempty" jsonschema:"absolute path of the project; left out, the project of the server or of the client"`
}

func (p inProject) projectPath() string { return p.ProjectPath }

// input is what the input of every tool can tell.
type input interface{ projectPath() string }

// add registers a tool whose handler runs in a project.
func add[In input, Out any](
	s *server.Server, projects Projects, name, description string, a server.Annotations,
	run func(context.Context, *Project, server.Call, In) (Out, error),
) {
	server.Add(s, server.Tool[In, Out]{
		Name: name, Description: strings.TrimSpace(description), Annotations: a, Paged: isPaged[In](),
		Handle: func(ctx context.Context, call server.Call, in In) (Out, error) {
			p, err := projects.Project(ctx, in.projectPath())
			if err != nil {
				var none Out
				return none, err
			}
			call.Notices(p.Path, p.Notices)
			return run(ctx, p, call, in)
		},
	})
}

// isPaged reports whether the input of a tool bounds a page itself.
func isPaged[In any]() bool {
	_, has := reflect.TypeFor[In]().FieldByName("MaxBytes")
	return has
}

// operate runs an orchestrator operation for an MCP client.
func operate[Out any](ctx context.Context, p *Project, call server.Call, name string, in any) (Out, error) {
	var none Out
	params, err := tool.ObjectOf(in)
	if err != nil {
		return none, err
	}
	return as[Out](control.Threads{Controller: p.Control}.Operate(ctx, caller(p, call), name, params))
}

// as is the result of an action or operation as the type it is documented to
// have.
func as[Out any](result any, err error) (Out, error) {
	var none Out
	if err != nil {
		return none, err
	}
	out, ok := result.(Out)
	if !ok {
		return none, fmt.Errorf("the result is a %T and not the %T it is documented to be", result, none)
	}
	return out, nil
}

// caller is an MCP client as the primary actions see it.
func caller(p *Project, call server.Call) action.Caller {
	var ticks atomic.Int64
	return action.Caller{
		Env: tool.Env{Project: p.Path, TraceID: call.TraceID, Keeps: true},
		By:  strings.TrimSpace("MCP client " + call.Session.Client),
		Ask: asker(call),
		Progress: func(v any) {
			// The protocol wants the number to rise with every notification; what
			// has happened is in the message.
			switch now := v.(type) {
			case control.Progress:
				call.Progress(server.Progress{Progress: float64(ticks.Add(1)), Message: describe(now)})
			case control.Looked:
				call.Progress(server.Progress{
					Progress: float64(now.Done), Total: float64(now.Total), Message: fmt.Sprintf("looked at %d of %d threads", now.Done, now.Total),
				})
			}
		},
	}
}

// describe tells a person how a wait stands.
func describe(p control.Progress) string {
	text := fmt.Sprintf("%d of %d ended, %d turns, %s", p.Done, p.Total, p.Turns, p.Spend)
	if p.LastSay != "" {
		text += ": " + p.LastSay
	}
	for _, w := range p.Waiting {
		text += fmt.Sprintf("; thread %s waits until %s for an answer (%s): rye-mcp threads approve %s",
			w.ThreadID, w.DeadlineAt.UTC().Format("15:04:05 UTC"), w.Code, w.ThreadID)
	}
	return text
}
