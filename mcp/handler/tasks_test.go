package handler

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/mcp/task"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// newTasking is a project whose threads are tasks under a key.
func newTasking(t *testing.T, p *Project, key string) *Project {
	t.Helper()
	more := *p
	more.Tasks = &task.Threads{
		Standing: p.Control.View.Standing, Now: time.Now,
		Code: func(words ...string) (string, error) { return strings.Repeat(key, 32) + strings.Join(words, ""), nil },
	}
	return &more
}

func serveTasks(t *testing.T, p *Project) *servertest.Client {
	t.Helper()
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	Register(s, oneProject{only: p}, Groups(), operation.All())
	s.OfferTasks(Tasks(oneProject{only: p}))
	return servertest.Start(t, s, servertest.Over(servertest.Stdio), servertest.Speaking("2026-07-28"), servertest.TakingTasks())
}

// A fork is a task that another server knows as well, and one of another key does not.
// The process of a thread is gone at once here, so the task is completed with a failure.
func TestForkAsTask(t *testing.T) {
	t.Parallel()
	p := newFolder(t, map[string]string{".ai/config/agent/agent.yaml": scriptedModel, ".ai/directives/greet.md": strings.Replace(greeting, ` required="true" enum="Ada,Alan"`, "", 1)})
	fork := map[string]any{"name": "rye_execute", "arguments": map[string]any{"item_id": "greet", "thread": "fork", "wait_seconds": 30}}
	c := serveTasks(t, newTasking(t, p, "a"))
	raw, failed := c.Request("tools/call", fork)
	if failed != nil {
		t.Fatal(failed)
	}
	var created struct {
		ResultType, TaskID, Status, StatusMessage string
		TTLMs                                     int64
	}
	if err := json.Unmarshal(raw, &created); err != nil || created.ResultType != "task" || created.TaskID == "" || created.TTLMs <= (24*time.Hour).Milliseconds() {
		t.Fatalf("the fork is answered with %s, %v", raw, err)
	}
	for {
		got := request(t, c, "tasks/get", map[string]any{"taskId": created.TaskID})
		if strings.Contains(got, `"status":"working"`) {
			continue
		}
		if !strings.Contains(got, `"status":"completed"`) || !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `\"directive\":\"greet\"`) {
			t.Errorf("it ends as %s", got)
		}
		break
	}
	if got := request(t, c, "tasks/cancel", map[string]any{"taskId": created.TaskID}); got != request(t, c, "tasks/update", map[string]any{"taskId": created.TaskID}) {
		t.Errorf("the cancel of one that has ended is answered with %s", got)
	}
	after := serveTasks(t, newTasking(t, p, "a"))
	if got := request(t, after, "tasks/get", map[string]any{"taskId": created.TaskID}); !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("another server says %s", got)
	}
	stranger := serveTasks(t, newTasking(t, p, "b"))
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if got := request(t, stranger, method, map[string]any{"taskId": created.TaskID}); !strings.Contains(got, "there is no task of that id here") {
			t.Errorf("%s of a stranger: %s", method, got)
		}
	}
	for name, arguments := range map[string]map[string]any{
		"inline":  {"item_id": "greet", "thread": "inline"},
		"dry run": {"item_id": "greet", "thread": "fork", "dry_run": true},
		"tool":    {"item_id": "rye/file-system/ls"},
	} {
		if got := request(t, c, "tools/call", map[string]any{"name": "rye_execute", "arguments": arguments}); strings.Contains(got, "taskId") || !strings.Contains(got, `"success":true`) {
			t.Errorf("%s is answered with %s", name, got)
		}
	}
}

// namedProjects are the projects of a server by their paths; one is that of calls which
// name none.
type namedProjects map[string]*Project

func (namedProjects) Several() bool { return true }

func (namedProjects) Holding(context.Context, []thread.ID, func(string) bool) (*Project, error) {
	return nil, nil //nolint:nilnil // threads lead nowhere
}

func (ps namedProjects) Project(_ context.Context, path string) (*Project, error) {
	if p := ps[path]; p != nil {
		return p, nil
	}
	return nil, tool.Faultf(tool.CodeNoProject, "no project is there")
}

// A client asks about a task of another project, ends it and answers it, though it can
// name no project with that.
func TestTaskOfAnotherProject(t *testing.T) {
	t.Parallel()
	usual := newTasking(t, newFolder(t, newFiles()), "a")
	other := newTasking(t, newFolder(t, newFiles()), "b")
	projects := namedProjects{"": usual, other.Path: other}
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	Register(s, projects, Groups(), operation.All())
	s.OfferTasks(Tasks(projects))
	c := servertest.Start(t, s, servertest.Over(servertest.Stdio), servertest.Speaking("2026-07-28"), servertest.TakingTasks())
	var created struct{ TaskID string }
	fork := map[string]any{"item_id": "greet", "parameters": map[string]any{"name": "Ada"}, "thread": "fork", "project_path": other.Path}
	raw := request(t, c, "tools/call", map[string]any{"name": "rye_execute", "arguments": fork})
	if err := json.Unmarshal([]byte(raw), &created); err != nil || created.TaskID == "" {
		t.Fatalf("the fork is answered with %s, %v", raw, err)
	}
	own, path := task.Place(created.TaskID)
	if path != other.Path {
		t.Errorf("the task is at %q, want %q", path, other.Path)
	}
	for _, tt := range []struct{ method, id, want string }{
		{"tasks/get", created.TaskID, `"taskId":"` + created.TaskID + `"`},
		{"tasks/update", created.TaskID, `"resultType":"complete"`},
		{"tasks/cancel", created.TaskID, `"resultType":"complete"`},
		{"tasks/get", own, "there is no task of that id here"},
		{"tasks/get", task.At(own, usual.Path+"x"), "no project is there"},
		{"tasks/get", task.At(strings.Replace(own, ".", ".0", 1), other.Path), "there is no task of that id here"},
	} {
		if got := request(t, c, tt.method, map[string]any{"taskId": tt.id}); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.method, tt.id, got, tt.want)
		}
	}
}

// A thread that ends without success is a failure for whoever waits for it by rye_execute,
// the same as a task and as a call. To wait for it by wait_threads is none.
func TestFailedForkIsError(t *testing.T) {
	t.Parallel()
	p := newFolder(t, map[string]string{".ai/config/agent/agent.yaml": scriptedModel, ".ai/directives/greet.md": strings.Replace(greeting, ` required="true" enum="Ada,Alan"`, "", 1)})
	c := connectTo(t, p)
	fork := map[string]any{"item_id": "greet", "thread": "fork", "wait_seconds": 30, "request_key": "k"}
	var told struct {
		Success, Existing bool
		ThreadID          string `json:"thread_id"`
		Code, Error, Next string
		Problem           thread.Problem
	}
	for _, want := range []struct {
		existing bool
		next     string
	}{{false, "read_transcript"}, {true, "another key"}} {
		r := c.Call("rye_execute", fork)
		if err := json.Unmarshal(r.JSON, &told); err != nil || !r.IsError || told.Success || told.Existing != want.existing {
			t.Fatalf("the call is answered with isError %v, %s, %v", r.IsError, r.JSON, err)
		}
		if told.Code == "" || told.Code != told.Problem.Code || told.Error == "" || !strings.Contains(told.Next, want.next) {
			t.Errorf("the call does not say what failed and what to call next: %s", r.JSON)
		}
	}
	if r := c.Call("wait_threads", map[string]any{"thread_ids": []string{told.ThreadID}}); r.IsError || !strings.Contains(string(r.JSON), `"success":false`) {
		t.Errorf("waiting is answered with isError %v, %s", r.IsError, r.JSON)
	}
	p = newTasking(t, p, "a")
	id, err := p.Tasks.ID(thread.ID(told.ThreadID))
	if err != nil {
		t.Fatal(err)
	}
	got := request(t, serveTasks(t, p), "tasks/get", map[string]any{"taskId": id})
	for _, want := range []string{`"isError":true`, `\"code\":\"` + told.Code, `\"next\":\"read_transcript`} {
		if !strings.Contains(got, want) {
			t.Errorf("the task lacks %s: %s", want, got)
		}
	}
}

// The question of a thread is one of its task, and the answer to it is the thread's.
func TestTaskAsks(t *testing.T) {
	t.Parallel()
	p := newTasking(t, newFolder(t, newFiles()), "a")
	q, finish := waitingThread(t, p)
	defer finish()
	id, err := p.Tasks.ID(q.ThreadID)
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	s.OfferTasks(Tasks(oneProject{only: p}))
	c := servertest.Start(t, s, servertest.Speaking("2026-07-28"), servertest.TakingTasks(),
		servertest.Asking(func(servertest.Question) servertest.Answer { return servertest.Answer{} }))
	got := request(t, c, "tasks/get", map[string]any{"taskId": id})
	if !strings.Contains(got, `"status":"input_required"`) || !strings.Contains(got, `"question-1":{"method":"elicitation/create","params":{"message":"What now?`) {
		t.Errorf("it asks %s", got)
	}
	update := func(answer map[string]any) string {
		return request(t, c, "tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{q.ID: answer}})
	}
	for words, answer := range map[string]map[string]any{
		`must be one of`:           {"action": "accept", "content": map[string]any{"decision": "perhaps"}},
		`cannot be raised`:         {"action": "accept", "content": map[string]any{"decision": "raise", "turns": 1}},
		`there is no action`:       {"action": "maybe"},
		`"resultType":"complete"}`: {"action": "cancel"},
	} {
		if got := update(answer); !strings.Contains(got, words) {
			t.Errorf("%v is answered with %s, want %s", answer, got, words)
		}
	}
	if now, err := p.Control.Threads.Store.Question(t.Context(), q.ID); err != nil || now.Answer != nil {
		t.Fatalf("it is answered already: %+v, %v", now.Answer, err)
	}
	if got := update(map[string]any{"action": "accept", "content": map[string]any{"decision": "raise", "turns": 30}}); !strings.Contains(got, `"resultType":"complete"}`) {
		t.Errorf("the answer is answered with %s", got)
	}
	now, err := p.Control.Threads.Store.Question(t.Context(), q.ID)
	if err != nil || now.Answer == nil || now.Answer.Decision != "raise" || now.Answer.Limits["turns"] != 30 || now.Answer.By != "the person at servertest" {
		t.Errorf("answered %+v, %v", now.Answer, err)
	}
}
