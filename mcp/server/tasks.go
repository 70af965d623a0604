package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// tasksExtension is the name under which clients and servers declare tasks (SEP-2663).
const tasksExtension = "io.modelcontextprotocol/tasks"

// TaskStatus is how a task stands.
type TaskStatus string

// The statuses. A tool that ran and reports an error completes its task; failed means
// that there is no result of the tool at all.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed"
	TaskFailed        TaskStatus = "failed"
	TaskCancelled     TaskStatus = "cancelled"
)

// taskPoll is how long clients are told to wait between two looks at a task.
const taskPoll = 2 * time.Second

// Task is work that goes on when its call has been answered.
type Task struct {
	// ID cannot be guessed: a client that knows it may see, answer and cancel the task.
	ID      string
	Status  TaskStatus
	Message string // for people; may be empty
	Created time.Time
	Updated time.Time
	// TTL is how long after Created the task can be asked about; 0: for ever.
	TTL  time.Duration
	Asks []ElicitRequest // of TaskInputRequired
	// Result is what the tool has returned, of TaskCompleted, and IsError that it is
	// one of a failure.
	Result  any
	IsError bool
	Err     error // of TaskFailed
}

// Tasks are the tasks of the project of a call. An error is a *tool.Fault, or becomes
// one; of tasks that do not exist, of others and of those whose time is over it is the
// same.
type Tasks interface {
	Get(ctx context.Context, call Call, id string) (Task, error)
	// Answer hands over the answer to one of the questions of a task, which fits its
	// schema.
	Answer(ctx context.Context, call Call, id, key string, answer ElicitResult) error
	// Cancel asks for the end of a task. One that has ended stays as it is.
	Cancel(ctx context.Context, call Call, id string) error
}

// OfferTasks has the server answer about tasks that its tools make. It is called
// before the first client comes.
func (s *Server) OfferTasks(t Tasks) {
	mcpserver.WithExtensions(map[string]any{tasksExtension: map[string]any{}})(s.mcp)
	Handle(s, "tasks/get", Modern, func(ctx context.Context, call Call, params taskParams) (mcp.ResultMetadata, error) {
		if err := params.check(ctx); err != nil {
			return nil, err
		}
		task, err := t.Get(ctx, call, params.TaskID)
		if err != nil {
			return nil, err
		}
		return s.detailed(ctx, task)
	})
	Handle(s, "tasks/update", Modern, func(ctx context.Context, call Call, params taskParams) (mcp.ResultMetadata, error) {
		if err := params.check(ctx); err != nil {
			return nil, err
		}
		return nil, answerTask(ctx, call, t, params)
	})
	Handle(s, "tasks/cancel", Modern, func(ctx context.Context, call Call, params taskParams) (mcp.ResultMetadata, error) {
		if err := params.check(ctx); err != nil {
			return nil, err
		}
		return nil, t.Cancel(ctx, call, params.TaskID)
	})
}

// TakesTasks reports whether the call that ctx belongs to may be answered with a task.
func TakesTasks(ctx context.Context) bool {
	info := mcpserver.RequestProtocolInfoFromContext(ctx)
	if info == nil || !info.Modern || info.ClientCapabilities == nil {
		return false
	}
	_, declared := info.ClientCapabilities.Extensions[tasksExtension]
	return declared
}

// AnswerWithTask has the call that ctx belongs to answered with a task instead of what
// its handler returns. The task exists, and its client takes tasks.
func AnswerWithTask(ctx context.Context, t Task) {
	if r := requestFrom(ctx); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.task = &t
	}
}

// created is the answer to a call that was answered with a task, if it was.
func (s *Server) created(ctx context.Context) *taskResult {
	r := requestFrom(ctx)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.task == nil {
		return nil
	}
	result := newTaskResult(*r.task)
	result.SetResultType("task")
	s.decorate(result)
	return result
}

// taskParams are the params of all methods of tasks.
type taskParams struct {
	TaskID    string                     `json:"taskId"`
	Responses map[string]json.RawMessage `json:"inputResponses"` // of tasks/update
}

// check refuses clients that do not declare tasks, as SEP-2575 has it.
func (p taskParams) check(ctx context.Context) error {
	switch {
	case !TakesTasks(ctx):
		return &rpcError{
			Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "the client does not declare the extension " + tasksExtension,
			Data: map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{tasksExtension: map[string]any{}}}},
		}
	case p.TaskID == "" || len(p.TaskID) > maxURI:
		return invalidParams("params.taskId must be the id of a task, as the answer to tools/call had it")
	}
	return nil
}

// answerTask hands the answers over that fit an open question. Keys of others are
// ignored: they were answered elsewhere, or never asked.
func answerTask(ctx context.Context, call Call, t Tasks, params taskParams) error {
	task, err := t.Get(ctx, call, params.TaskID)
	if err != nil {
		return err
	}
	for _, q := range task.Asks {
		raw, given := params.Responses[q.Key]
		if !given {
			continue
		}
		if err := q.complete(); err != nil {
			return err
		}
		answer, err := q.parse(raw)
		if err != nil {
			return invalidParams("inputResponses.%s: %v", item.Clip(q.Key, 100), err)
		}
		if err := t.Answer(ctx, call, params.TaskID, q.Key, answer); err != nil {
			return err
		}
	}
	return nil
}

// taskResult is a task in an answer.
type taskResult struct {
	mcp.Result
	TaskID  string              `json:"taskId"`
	Status  TaskStatus          `json:"status"`
	Message string              `json:"statusMessage,omitempty"`
	Created time.Time           `json:"createdAt"`
	Updated time.Time           `json:"lastUpdatedAt"`
	TTL     *int64              `json:"ttlMs"`
	Poll    int64               `json:"pollIntervalMs,omitempty"`
	Asks    map[string]taskAsks `json:"inputRequests,omitempty"`
	Outcome *plainResult        `json:"result,omitempty"`
	Error   *rpcError           `json:"error,omitempty"`
}

// taskAsks is a question to the person in a task.
type taskAsks struct {
	Method string                `json:"method"`
	Params mcp.ElicitationParams `json:"params"`
}

func newTaskResult(t Task) *taskResult {
	result := &taskResult{
		TaskID: t.ID, Status: t.Status, Message: t.Message, Created: t.Created.UTC(), Updated: t.Updated.UTC(), Poll: taskPoll.Milliseconds(),
	}
	if t.TTL > 0 {
		ms := t.TTL.Milliseconds()
		result.TTL = &ms
	}
	return result
}

// detailed is a task with what has become of it. A question is told to clients that
// can ask the person; others see that the task works, and its message says what it
// waits for.
func (s *Server) detailed(ctx context.Context, t Task) (*taskResult, error) {
	result := newTaskResult(t)
	switch t.Status {
	case TaskInputRequired:
		if !hasForms(*mcpserver.RequestProtocolInfoFromContext(ctx).ClientCapabilities) {
			result.Status = TaskWorking
			return result, nil
		}
		result.Asks = make(map[string]taskAsks, len(t.Asks))
		for _, q := range t.Asks {
			if err := q.complete(); err != nil {
				return nil, err
			}
			result.Asks[q.Key] = taskAsks{Method: string(mcp.MethodElicitationCreate), Params: q.params()}
		}
	case TaskCompleted:
		data, err := encode(t.Result)
		if err != nil {
			return nil, err
		}
		_, others := sortAttachments(tool.AttachmentsOf(t.Result))
		result.Outcome = plain(toolResult(s.shaped(ctx, data, t.Result, others), t.IsError))
	case TaskFailed:
		result.Error = s.rpcErrorOf(ctx, "tasks/get", t.Err)
	case TaskWorking, TaskCancelled:
	}
	return result, nil
}
