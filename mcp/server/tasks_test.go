package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// fakeTasks are tasks that a test has put there.
type fakeTasks struct {
	byID      map[string]server.Task
	answered  map[string]string // content, by key
	cancelled []string
}

func (f *fakeTasks) Get(_ context.Context, _ server.Call, id string) (server.Task, error) {
	t, ok := f.byID[id]
	if !ok {
		return t, tool.Faultf(tool.CodeNotFound, "no such task")
	}
	return t, nil
}

func (f *fakeTasks) Answer(_ context.Context, _ server.Call, _, key string, answer server.ElicitResult) error {
	f.answered[key] = answer.Action + string(answer.Content)
	return nil
}

func (f *fakeTasks) Cancel(_ context.Context, _ server.Call, id string) error {
	f.cancelled = append(f.cancelled, id)
	return nil
}

type started struct {
	Success bool `json:"success"`
}

// newTaskServer has a tool whose call is answered with a task where that can be.
func newTaskServer() (*server.Server, *fakeTasks) {
	question := func(key string) server.ElicitRequest {
		return server.ElicitRequest{Key: key, Message: "Sure?", Schema: json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}`)}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	base := server.Task{Created: at, Updated: at, TTL: time.Hour}
	with := func(id string, status server.TaskStatus, change func(*server.Task)) server.Task {
		t := base
		t.ID, t.Status = id, status
		if change != nil {
			change(&t)
		}
		return t
	}
	f := &fakeTasks{answered: map[string]string{}, byID: map[string]server.Task{}}
	for _, t := range []server.Task{
		with("works", server.TaskWorking, func(t *server.Task) { t.Message, t.TTL = "half way", 0 }),
		with("asks", server.TaskInputRequired, func(t *server.Task) { t.Asks = []server.ElicitRequest{question("one"), question("two")} }),
		with("done", server.TaskCompleted, func(t *server.Task) { t.Result = started{true} }),
		with("bad", server.TaskCompleted, func(t *server.Task) { t.Result, t.IsError = started{}, true }),
		with("broken", server.TaskFailed, func(t *server.Task) { t.Err = errors.New("boom") }),
		with("stopped", server.TaskCancelled, nil),
	} {
		f.byID[t.ID] = t
	}
	s := newServer()
	s.OfferTasks(f)
	server.Add(s, server.Tool[struct{}, started]{
		Name: "start", Description: "Starts.", Annotations: server.Annotations{Title: "Start"},
		Handle: func(ctx context.Context, _ server.Call, _ struct{}) (started, error) {
			if server.TakesTasks(ctx) {
				server.AnswerWithTask(ctx, f.byID["works"])
			}
			return started{true}, nil
		},
	})
	return s, f
}

// asked returns the answer to a request, or the error.
func asked(t *testing.T, c *servertest.Client, method string, params map[string]any) string {
	t.Helper()
	raw, failed := c.Request(method, params)
	if failed != nil {
		var err error
		if raw, err = json.Marshal(failed); err != nil {
			t.Fatal(err)
		}
	}
	return string(raw)
}

func TestTasks(t *testing.T) {
	t.Parallel()
	s, f := newTaskServer()
	sure := func(answer any) map[string]any {
		return map[string]any{"action": "accept", "content": map[string]any{"sure": answer}}
	}
	const head = `","createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z","ttlMs":3600000,"pollIntervalMs":2000`
	c := servertest.Start(t, s, servertest.Over(servertest.Stdio), servertest.Speaking("2026-07-28"), servertest.TakingTasks(),
		servertest.Asking(func(servertest.Question) servertest.Answer { return servertest.Answer{} }))
	for _, tt := range []struct {
		method string
		params map[string]any
		want   string // in the answer
	}{
		{"server/discover", map[string]any{}, `"extensions":{"io.modelcontextprotocol/tasks":{}}`},
		{"tools/call", map[string]any{"name": "start"}, `"resultType":"task","taskId":"works","status":"working","statusMessage":"half way","createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z","ttlMs":null,"pollIntervalMs":2000}`},
		{"tasks/get", map[string]any{"taskId": "asks"}, `"taskId":"asks","status":"input_required` + head + `,"inputRequests":{"one":{"method":"elicitation/create","params":{"message":"Sure?"`},
		{"tasks/get", map[string]any{"taskId": "done"}, `"status":"completed` + head + `,"result":{"content":[{"type":"text","text":"{\"success\":true}"}],"structuredContent":{"success":true}}}`},
		{"tasks/get", map[string]any{"taskId": "bad"}, `"isError":true`},
		{"tasks/get", map[string]any{"taskId": "broken"}, `"error":{"code":-32603,`},
		{"tasks/get", map[string]any{"taskId": "stopped"}, `"status":"cancelled` + head + `}`},
		{"tasks/get", map[string]any{"taskId": "other"}, `"code":-32602,"message":"no such task"`},
		{"tasks/get", map[string]any{}, `-32602`},
		{"tasks/get", map[string]any{"taskId": strings.Repeat("x", 1<<20)}, `-32602`},
		{"tasks/update", map[string]any{"taskId": "asks", "inputResponses": map[string]any{"one": sure("perhaps"), "two": sure(true)}}, `"message":"inputResponses.one: `},
		{"tasks/update", map[string]any{"taskId": "asks", "inputResponses": map[string]any{"two": sure(true), "three": sure(true)}}, `"resultType":"complete"}`},
		{"tasks/update", map[string]any{"taskId": "done", "inputResponses": map[string]any{"one": sure(true)}}, `"resultType":"complete"}`},
		{"tasks/update", map[string]any{"taskId": "other"}, `-32602`},
		{"tasks/cancel", map[string]any{"taskId": "works"}, `"resultType":"complete"}`},
		{"tasks/list", map[string]any{}, `-32601`},
		{"tasks/result", map[string]any{"taskId": "done"}, `-32601`},
	} {
		if got := asked(t, c, tt.method, tt.params); !strings.Contains(got, tt.want) {
			t.Errorf("%s %.60v\ngot  %.1000s\nwant %s", tt.method, tt.params, got, tt.want)
		}
	}
	if len(f.answered) != 1 || f.answered["two"] != `accept{"sure":true}` || len(f.cancelled) != 1 || f.cancelled[0] != "works" {
		t.Errorf("answered %v, cancelled %v", f.answered, f.cancelled)
	}
}

// Answers to clients that do not declare tasks, or cannot ask.
func TestTasksUndeclared(t *testing.T) {
	t.Parallel()
	s, _ := newTaskServer()
	plain := servertest.Start(t, s, servertest.Over(servertest.Stateless))
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		got := asked(t, plain, method, map[string]any{"taskId": "works"})
		if !strings.Contains(got, `"code":-32021`) || !strings.Contains(got, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
			t.Errorf("%s: %s", method, got)
		}
	}
	if got := plain.Call("start", map[string]any{}); got.IsError {
		t.Errorf("a call is answered with %+v", got)
	}
	older := servertest.Start(t, s, servertest.TakingTasks())
	if got := asked(t, older, "tasks/get", map[string]any{"taskId": "works"}); !strings.Contains(got, `-32601`) {
		t.Errorf("of an older revision: %s", got)
	}
	mute := servertest.Start(t, s, servertest.Over(servertest.Stateless), servertest.TakingTasks())
	if got := asked(t, mute, "tasks/get", map[string]any{"taskId": "asks"}); !strings.Contains(got, `"status":"working"`) || strings.Contains(got, "inputRequests") {
		t.Errorf("a client that cannot ask is told %s", got)
	}
}
