// Package task makes tasks of threads: handles, of the tasks extension of MCP, that
// cannot be guessed and that outlive the server which gave them out.
//
// A task is a thread under another name, so nothing of it is stored: its id is that of
// the thread with a code that only the holder of the user's state key can make. It is
// as durable as the thread, and refused when the thread was deleted.
package task

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// keptAfter is how long a task can be asked about beyond the time that its thread may
// run: a client that was closed in the evening finds it in the morning.
const keptAfter = 24 * time.Hour

// Threads are the threads of one project as tasks.
type Threads struct {
	// Standing tells how a thread stands; thread.ErrNotFound when there is none.
	Standing func(ctx context.Context, id thread.ID) (view.Standing, error)
	// Code authenticates words to the user and the project, in hex.
	Code func(words ...string) (string, error)
	Now  func() time.Time
}

// ID is the id of the task of a thread.
func (t *Threads) ID(id thread.ID) (string, error) {
	code, err := t.code(id)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString([]byte(id)) + "." + code, nil
}

// At is the id of a task of a project that is not the one of its client: a client names no
// project when it asks about a task.
func At(taskID, path string) string {
	return taskID + "." + base64.RawURLEncoding.EncodeToString([]byte(path))
}

// Place is the id that a task has in its project, and the path of that; empty where it is the
// one of the client. An id that somebody made up leads no further than the path of a call.
func Place(taskID string) (own, path string) {
	thread, rest, _ := strings.Cut(taskID, ".")
	code, where, elsewhere := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(where)
	if !elsewhere || err != nil {
		return taskID, ""
	}
	return thread + "." + code, string(raw)
}

// code is what cannot be guessed of the id of a task, 128 bits of it.
func (t *Threads) code(id thread.ID) (string, error) {
	code, err := t.Code("task", string(id))
	if err != nil {
		return "", fmt.Errorf("id of a task: %w", err)
	}
	return code[:32], nil
}

// Thread is the thread of a task. It need not be there any more.
func (t *Threads) Thread(taskID string) (thread.ID, error) {
	name, given, ok := strings.Cut(taskID, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(name)
	if !ok || err != nil {
		return "", unknown()
	}
	id := thread.ID(raw)
	code, err := t.code(id)
	if err != nil || !hmac.Equal([]byte(code), []byte(given)) {
		return "", unknown()
	}
	return id, nil
}

// unknown is the one refusal of ids that were made up, are of another project or user,
// or whose time is over: which of it tells a stranger something.
func unknown() error {
	return tool.Faultf(tool.CodeNotFound, "there is no task of that id here, or its time is over").
		WithHint("list_threads shows the threads of the project.")
}

// Get is the task of an id, and its thread's questions.
func (t *Threads) Get(ctx context.Context, taskID string) (server.Task, []thread.Question, error) {
	id, err := t.Thread(taskID)
	if err != nil {
		return server.Task{}, nil, err
	}
	now, err := t.Standing(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return server.Task{}, nil, unknown()
	}
	if err != nil {
		return server.Task{}, nil, err
	}
	task := Of(taskID, now)
	if now.Over() && task.TTL > 0 && t.Now().After(task.Created.Add(task.TTL)) {
		return server.Task{}, nil, unknown()
	}
	return task, now.Asks, nil
}

// Of is a thread as a task. The questions of the thread are not in it.
func Of(taskID string, now view.Standing) server.Task {
	task := server.Task{ID: taskID, Created: now.Created, Updated: now.Updated, Message: message(now)}
	if now.Duration > 0 {
		task.TTL = now.Duration + keptAfter
	}
	switch {
	case now.Status == thread.Cancelled:
		task.Status = server.TaskCancelled
	case now.Over():
		task.Status, task.Result, task.IsError = server.TaskCompleted, now.Started, !now.Success
	case len(now.Asks) > 0:
		task.Status = server.TaskInputRequired
	default:
		task.Status = server.TaskWorking
	}
	return task
}

// maxWords bounds what a message repeats of what a model writes, in bytes.
const maxWords = 200

// message tells a person how a thread stands, and by which id everything else knows it.
func message(now view.Standing) string {
	turns := "turns"
	if now.Cost.Turns == 1 {
		turns = "turn"
	}
	text := fmt.Sprintf("thread %s: %d %s, %s", now.ThreadID, now.Cost.Turns, turns, now.Cost.Spend)
	switch {
	case now.Queued:
		text += "; queued"
	case len(now.Asks) > 0:
		text += fmt.Sprintf("; waits for an answer: rye-mcp threads approve %s", now.Asks[0].ThreadID)
	case now.Retry != nil:
		text += "; it has failed and is tried again at " + now.Retry.At.UTC().Format(time.RFC3339)
	case !now.Status.Terminal():
		if now.LastTool != "" {
			text += ", " + item.Shown(now.LastTool)
		}
		if words := strings.Join(strings.Fields(now.LastText), " "); words != "" {
			text += ": " + item.End(words, maxWords)
		}
	}
	return text
}
