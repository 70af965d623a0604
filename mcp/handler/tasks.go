package handler

import (
	"context"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/task"
	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// Tasks offers the threads of a project as tasks: of the one that the id of the task
// names, else of that of the call.
func Tasks(projects Projects) server.Tasks { return tasks{projects} }

type tasks struct{ projects Projects }

// Get implements [server.Tasks].
func (t tasks) Get(ctx context.Context, call server.Call, id string) (server.Task, error) {
	_, found, _, err := t.find(ctx, call, id)
	return found, err
}

// find is a task with its open questions, and their forms in it.
func (t tasks) find(ctx context.Context, call server.Call, id string) (*Project, server.Task, []thread.Question, error) {
	own, path := task.Place(id)
	if path != "" {
		call.Common = map[string]string{projectPath: path}
	}
	p, err := open(ctx, t.projects, call)
	if err != nil {
		return nil, server.Task{}, nil, err
	}
	found, questions, err := p.Tasks.Get(ctx, own)
	if err != nil {
		return nil, server.Task{}, nil, action.Fault(err)
	}
	found.ID = id
	for _, q := range questions {
		form, err := formOf(q)
		if err != nil {
			return nil, server.Task{}, nil, err
		}
		form.Key = q.ID
		found.Asks = append(found.Asks, form)
	}
	return p, found, questions, nil
}

// Answer implements [server.Tasks]. Somebody else may have answered meanwhile.
func (t tasks) Answer(ctx context.Context, call server.Call, id, key string, given server.ElicitResult) error {
	p, _, questions, err := t.find(ctx, call, id)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(questions, func(q thread.Question) bool { return q.ID == key })
	if i < 0 {
		return nil
	}
	answer, err := answerOf(questions[i], given)
	if err != nil {
		return nil //nolint:nilerr // the person has put the question away: it stays open
	}
	_, err = p.Control.Approve(ctx, control.ApproveRequest{
		Person: true, ThreadID: questions[i].ThreadID, Decision: answer.Decision, Limits: answer.Limits, Summary: answer.Summary, By: personAt(call),
	})
	if err != nil {
		return action.Fault(err)
	}
	return nil
}

// Cancel implements [server.Tasks].
func (t tasks) Cancel(ctx context.Context, call server.Call, id string) error {
	p, found, _, err := t.find(ctx, call, id)
	if err != nil || found.Status == server.TaskCompleted || found.Status == server.TaskCancelled {
		return err
	}
	own, _ := task.Place(id)
	of, err := p.Tasks.Thread(own)
	if err != nil {
		return err
	}
	if _, err := p.Control.Stop.By(strings.TrimSpace("MCP client "+call.Session.Client)).Cancel(ctx, of); err != nil {
		return action.Fault(err)
	}
	return nil
}

// answerWithTask has a call answered with the task of the thread that it has started.
func answerWithTask(ctx context.Context, p *Project, call server.Call, id thread.ID) error {
	name, err := p.Tasks.ID(id)
	if err != nil {
		return err
	}
	if call.Common[projectPath] != "" {
		name = task.At(name, p.Path)
	}
	now, err := p.Control.View.Standing(ctx, id)
	if err != nil {
		return action.Fault(err)
	}
	server.AnswerWithTask(ctx, task.Of(name, now))
	return nil
}

// isFork reports whether a result is that of a start, and not of a thread that has
// ended already.
func isFork(result any) (thread.ID, bool) {
	started, ok := result.(view.Started)
	return started.ThreadID, ok && !started.Over()
}
