// Package handler makes the MCP tools: of the primary actions, one function each
// with a description for models beside it, and of the operations on threads, from
// their table. A handler only translates between a client and the rooms to the
// right.
package handler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/prompt"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/task"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Project is what the tools work on.
type Project struct {
	Path    string
	Actions *action.Actions
	Control *control.Controller
	Prompts *prompt.Feed
	Tasks   *task.Threads
	// Notices are what holds for the whole project and its user should know.
	Notices func() []string
	// Origin is how the threads of a client are known; nil: they are nobody's.
	Origin func(server.Session) thread.Origin
}

// originOf is how the threads of the client of a call are known.
func (p *Project) originOf(call server.Call) thread.Origin {
	if p.Origin == nil {
		return thread.Origin{}
	}
	return p.Origin(call.Session)
}

// newsFor are what has become of the threads of a client, beside an answer.
func (p *Project) newsFor(call server.Call) func(context.Context, any) json.Marshaler {
	return func(ctx context.Context, result any) json.Marshaler {
		who := p.originOf(call)
		if who == (thread.Origin{}) {
			return nil
		}
		since, err := p.Control.News.Since(ctx, who, view.ToldBy(result))
		if err != nil {
			p.Control.Threads.Log.Warn().Err(err).Msg("could not tell a client what has become of its threads")
		}
		if err != nil || since.IsEmpty() {
			return nil
		}
		return since
	}
}

// Projects finds the project of a call: the one it names, else the server's,
// else the client's single root, else the working directory.
type Projects interface {
	Project(ctx context.Context, path string) (*Project, error)
	// Holding returns the open project to which threads lead, of those that visited tells
	// by their paths: the one that has all, else the one that has some. It is nil where none
	// has any, and an error where several have.
	Holding(ctx context.Context, ids []thread.ID, visited func(path string) bool) (*Project, error)
	// Several reports whether calls may have to name their project: else clients
	// are not told that they can.
	Several() bool
}

// projectPath is the argument of every tool that says where it works.
const projectPath = "project_path"

// common are the arguments that every tool takes beside its own.
func common() []tool.Text {
	return []tool.Text{{Name: projectPath}}
}

// untold are arguments that clients are not told of, and project_path where there is
// one project.
func untold(projects Projects, names ...string) []string {
	if !projects.Several() {
		names = append(names, projectPath)
	}
	return names
}

// open finds the project of a call.
func open(ctx context.Context, projects Projects, call server.Call) (*Project, error) {
	return openFor(ctx, projects, call, nil)
}

// openFor finds the project of a call of an operation. Only ids of threads may lead to
// another project than that of [Projects.Project], and to none that the client has not
// been in: a call about all threads of a project is never moved to another one.
func openFor(ctx context.Context, projects Projects, call server.Call, ids []thread.ID) (*Project, error) {
	p, err := ProjectOf(ctx, projects, call, call.Common[projectPath], ids)
	if err == nil {
		p.heard(call)
	}
	return p, err
}

// ProjectOf finds the project of what a client asks about threads: the one that path names, else
// the one that the client has been in and that has the threads, else that of
// [Projects.Project].
func ProjectOf(ctx context.Context, projects Projects, call server.Call, path string, ids []thread.ID) (*Project, error) {
	if path == "" && len(ids) > 0 {
		if p, err := projects.Holding(ctx, ids, call.Visited); p != nil || err != nil {
			return p, err
		}
	}
	return projects.Project(ctx, path)
}

// heard says what an answer from the project tells beside its result.
func (p *Project) heard(call server.Call) {
	call.Notices(p.Path, p.Notices)
	call.News(p.newsFor(call))
}

// texts are what clients are told of the tool of a primary action, and arguments
// that they are not told of.
type texts struct {
	name, description string
	untold            []string
}

// add registers a tool whose handler runs in a project.
func add[In, Out any](
	s *server.Server, projects Projects, t texts, a server.Annotations,
	run func(context.Context, *Project, server.Call, In) (Out, error),
) {
	addAnywhere(s, projects, t, a, func(ctx context.Context, call server.Call, in In) (Out, error) {
		p, err := open(ctx, projects, call)
		if err != nil {
			var none Out
			return none, err
		}
		return run(ctx, p, call, in)
	})
}

// addAnywhere registers a tool whose handler finds its project by itself.
func addAnywhere[In, Out any](
	s *server.Server, projects Projects, t texts, a server.Annotations, handle func(context.Context, server.Call, In) (Out, error),
) {
	server.Add(s, server.Tool[In, Out]{
		Name: t.name, Description: strings.TrimSpace(t.description), Annotations: a, Common: common(), Untold: untold(projects, t.untold...), Meta: metaOf(t.name),
		Handle: handle,
	})
}

// findsProject reports whether clients are not told that an operation takes
// project_path: the threads that it names lead there, or hardly any client works in
// several projects when it asks for this, and the refusal names the argument.
func findsProject(e operation.Entry) bool {
	return e.NamesThreads || e.Group == operation.Admin || e.Effect.Has(operation.ReadOnly)
}

// addOperation registers the tool of an operation on threads.
func addOperation(s *server.Server, projects Projects, e operation.Entry) {
	without := untold(projects, e.Untold...)
	if findsProject(e) {
		without = append(slices.Clone(e.Untold), projectPath)
	}
	server.AddUntyped(s, server.Untyped{
		Name: e.Name, Description: e.Doc, Annotations: annotationsOf(e), Common: common(), Untold: without, Meta: metaOf(e.Name),
		Input: e.Input, Output: e.Output,
		Bind: func(schema json.RawMessage) func(context.Context, server.Call, json.RawMessage) (any, error) {
			decode := e.Decoder(func() (json.RawMessage, error) { return schema, nil })
			return func(ctx context.Context, call server.Call, args json.RawMessage) (any, error) {
				decoded, err := decode(args)
				if err != nil {
					return nil, err
				}
				p, err := openFor(ctx, projects, call, decoded.Threads)
				if err != nil {
					return nil, err
				}
				return decoded.Run(ctx, p.Control, caller(p, call))
			}
		},
	})
}

func annotationsOf(e operation.Entry) server.Annotations {
	return server.Annotations{
		Title: e.Title, ReadOnly: e.Effect.Has(operation.ReadOnly), Destructive: e.Effect.Has(operation.Destructive),
		Idempotent: e.Effect.Has(operation.Idempotent), OpenWorld: e.Effect.Has(operation.OpenWorld),
	}
}

// CallerOf is the client of a call, for tools that are made elsewhere.
func CallerOf(p *Project, call server.Call) action.Caller { return caller(p, call) }

// caller is an MCP client as the primary actions see it.
func caller(p *Project, call server.Call) action.Caller {
	return action.Caller{
		Env:    tool.Env{Project: p.Path, TraceID: call.TraceID, Keeps: true, Room: call.Room},
		By:     strings.TrimSpace("MCP client " + call.Session.Client),
		Origin: p.originOf(call), Hold: holdOf(call.Session),
		Room: call.Room,
		Ask:  asker(call),
		Progress: func(now any) {
			if p, known := progressOf(now); known {
				call.Progress(p)
			}
		},
	}
}

// progressOf is how far an operation is, as a client is told.
func progressOf(now any) (server.Progress, bool) {
	switch now := now.(type) {
	case control.Progress:
		return progressOfWait(now), true
	case tidy.Progress:
		return progressOfMany("deleted", now.Done, now.Total), true
	case health.Looked:
		return progressOfMany("looked at", now.Done, now.Total), true
	}
	return server.Progress{}, false
}

// progressOfMany is how many threads something was done with.
func progressOfMany(what string, done, total int) server.Progress {
	return server.Progress{Progress: float64(done), Total: float64(total), Message: fmt.Sprintf("%s %d of %d threads", what, done, total)}
}

// progressOfWait is how far a wait is: threads that have ended, of several, or the turns
// of one. The server lets the number grow where nothing has happened.
func progressOfWait(p control.Progress) server.Progress {
	if p.Total > 1 {
		return server.Progress{Progress: float64(p.Done), Total: float64(p.Total), Message: describe(p)}
	}
	return server.Progress{Progress: float64(p.Turns), Total: float64(p.TurnLimit), Message: describe(p)}
}

// describe tells a person how a wait stands.
func describe(p control.Progress) string {
	text := fmt.Sprintf("%d of %d ended, %s, %s", p.Done, p.Total, thread.TurnsText(p.Turns), p.Spend)
	if p.LastSay != "" {
		text += ": " + p.LastSay
	}
	for _, w := range p.Waiting {
		text += fmt.Sprintf("; thread %s waits until %s for an answer (%s): rye-mcp threads approve %s",
			w.ThreadID, w.DeadlineAt.UTC().Format("15:04:05 UTC"), w.Code, w.ThreadID)
	}
	return text
}
