package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"crypto/rand"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// tasks are those of the scenarios, in memory.
type tasks struct {
	mu   sync.Mutex
	byID map[string]*job
}

// job is a task at work.
type job struct {
	task server.Task
	stop context.CancelFunc
	done chan struct{} // closed when all questions are answered
}

func (t *tasks) Get(_ context.Context, _ server.Call, id string) (server.Task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.byID[id]
	if j == nil {
		return server.Task{}, tool.Faultf(tool.CodeNotFound, "there is no task of that id")
	}
	return j.task, nil
}

func (t *tasks) Answer(_ context.Context, _ server.Call, id, key string, _ server.ElicitResult) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.byID[id]
	var left []server.ElicitRequest
	for _, q := range j.task.Asks {
		if q.Key != key {
			left = append(left, q)
		}
	}
	if j.task.Asks = left; len(left) == 0 {
		j.task.Status = server.TaskWorking
		close(j.done)
	}
	return nil
}

func (t *tasks) Cancel(_ context.Context, _ server.Call, id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.byID[id]
	if j == nil {
		return tool.Faultf(tool.CodeNotFound, "there is no task of that id")
	}
	j.stop()
	return nil
}

// work answers a call with a task, or does it at once for clients that take none. Its
// questions are answered before do runs.
func (t *tasks) work(ctx context.Context, asks []server.ElicitRequest, do func(context.Context) (said, error)) (said, error) {
	if !server.TakesTasks(ctx) {
		return do(ctx)
	}
	now := time.Now()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	j := &job{stop: stop, done: make(chan struct{}), task: server.Task{
		ID: rand.Text(), Status: server.TaskWorking, Created: now, Updated: now, TTL: time.Hour, Asks: asks,
	}}
	if len(asks) > 0 {
		j.task.Status = server.TaskInputRequired
	} else {
		close(j.done)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[string]*job{}
	}
	t.byID[j.task.ID] = j
	created := j.task
	created.Asks = nil
	server.AnswerWithTask(ctx, created)
	go t.run(running, j, do)
	return said{}, nil
}

var errProtocol = errors.New("a failure of the protocol")

func (t *tasks) run(ctx context.Context, j *job, do func(context.Context) (said, error)) {
	defer j.stop()
	var result said
	var err error
	select {
	case <-j.done:
		result, err = do(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j.task.Updated, j.task.Asks = time.Now(), nil
	switch {
	case errors.Is(err, context.Canceled):
		j.task.Status = server.TaskCancelled
	case errors.Is(err, errProtocol):
		j.task.Status, j.task.Err = server.TaskFailed, err
	case err != nil:
		j.task.Status, j.task.IsError, j.task.Result = server.TaskCompleted, true, tool.AsFault(err).Body()
	default:
		j.task.Status, j.task.Result = server.TaskCompleted, result
	}
}

// taskInput has the arguments of all tools that make tasks.
type taskInput struct {
	Name     string  `json:"name,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
	Label    string  `json:"label,omitempty"`
	Filename string  `json:"filename,omitempty"`
}

// addTaskTools registers the tools of the scenarios about tasks.
func addTaskTools(s *server.Server, t *tasks) {
	addWork := func(name string, handle func(context.Context, taskInput) (said, error)) {
		server.Add(s, server.Tool[taskInput, said]{
			Name: name, Description: "For scenarios of the conformance suite.", Annotations: server.Annotations{Title: name, ReadOnly: true},
			Handle: func(ctx context.Context, _ server.Call, in taskInput) (said, error) { return handle(ctx, in) },
		})
	}
	question := func(key string) server.ElicitRequest {
		return server.ElicitRequest{Key: key, Message: "Go on?", Schema: json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean"}}}`)}
	}
	done := func(context.Context) (said, error) { return saying("done") }
	addWork("greet", func(_ context.Context, in taskInput) (said, error) { return saying("Hello, " + in.Name + "!") })
	addWork("slow_compute", func(ctx context.Context, in taskInput) (said, error) {
		return t.work(ctx, nil, func(ctx context.Context) (said, error) {
			select {
			case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
				return saying("computed")
			case <-ctx.Done():
				return said{}, ctx.Err()
			}
		})
	})
	addWork("failing_job", func(ctx context.Context, _ taskInput) (said, error) {
		return t.work(ctx, nil, func(context.Context) (said, error) { return said{}, tool.Faultf(tool.CodeToolFailed, "it failed") })
	})
	addWork("protocol_error_job", func(ctx context.Context, _ taskInput) (said, error) {
		return t.work(ctx, nil, func(context.Context) (said, error) { return said{}, errProtocol })
	})
	addWork("confirm_delete", func(ctx context.Context, _ taskInput) (said, error) {
		return t.work(ctx, []server.ElicitRequest{question("one")}, done)
	})
	addWork("multi_input", func(ctx context.Context, _ taskInput) (said, error) {
		return t.work(ctx, []server.ElicitRequest{question("one"), question("two")}, done)
	})
	addWork("test_tool_with_task", func(ctx context.Context, _ taskInput) (said, error) {
		answer, err := ask(ctx, server.ElicitRequest{Key: "user_name", Message: "What is your name?", Schema: json.RawMessage(nameSchema)})
		if err != nil {
			return said{}, err
		}
		return t.work(ctx, nil, func(context.Context) (said, error) { return saying(fmt.Sprintf("Hello, %v!", answer.Content["name"])) })
	})
}
