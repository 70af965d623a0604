package task_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/task"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a project with some threads, and a clock.
type world struct {
	*task.Threads
	threads map[thread.ID]view.Standing
	now     time.Time
}

func newWorld(key string) *world {
	w := &world{threads: map[thread.ID]view.Standing{}, now: began}
	w.Threads = &task.Threads{
		Standing: func(_ context.Context, id thread.ID) (view.Standing, error) {
			s, ok := w.threads[id]
			if !ok {
				return s, thread.ErrNotFound
			}
			return s, nil
		},
		Code: func(words ...string) (string, error) {
			sum := sha256.Sum256([]byte(key + "\x00" + strings.Join(words, "\x00")))
			return hex.EncodeToString(sum[:]), nil
		},
		Now: func() time.Time { return w.now },
	}
	return w
}

func (w *world) put(id thread.ID, status thread.State, change func(*view.Standing)) {
	s := view.Standing{
		Started: view.Started{ThreadID: id, Status: status, Success: true, Cost: thread.Cost{Turns: 3, Spend: 12_300}},
		Created: began, Updated: began.Add(time.Minute), Duration: time.Hour,
	}
	if change != nil {
		change(&s)
	}
	w.threads[id] = s
}

func (w *world) id(t rapid.TB, id thread.ID) string {
	t.Helper()
	name, err := w.ID(id)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// refused checks that a task is refused as every other, and returns the words.
func refused(t rapid.TB, err error) string {
	t.Helper()
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Code != tool.CodeNotFound {
		t.Fatalf("got %v", err)
	}
	return f.Message + f.Hint
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld("key")
	tests := []struct {
		state   thread.State
		change  func(*view.Standing)
		want    server.TaskStatus
		isError bool
		message string
	}{
		{thread.Created, func(s *view.Standing) { s.Queued = true }, server.TaskWorking, false, "thread t: 3 turns, $0.0123; queued"},
		{thread.Running, nil, server.TaskWorking, false, "thread t: 3 turns, $0.0123"},
		{thread.Running, func(s *view.Standing) { s.LastText = "I read\nthe file" }, server.TaskWorking, false, "thread t: 3 turns, $0.0123: I read the file"},
		{thread.Running, func(s *view.Standing) { s.Asks = []thread.Question{{ID: "q", ThreadID: "child"}} }, server.TaskInputRequired, false,
			"thread t: 3 turns, $0.0123; waits for an answer: rye-mcp threads approve child"},
		{thread.Running, func(s *view.Standing) { s.LastText, s.LastTool = "I look", "rye_file_system_read" }, server.TaskWorking, false, "thread t: 3 turns, $0.0123, rye_file_system_read: I look"},
		{thread.Completed, func(s *view.Standing) { s.LastText, s.LastTool = "said", "x" }, server.TaskCompleted, false, "thread t: 3 turns, $0.0123"},
		{thread.Error, func(s *view.Standing) { s.Success = false }, server.TaskCompleted, true, "thread t: 3 turns, $0.0123"},
		{thread.Cancelled, func(s *view.Standing) { s.Success = false }, server.TaskCancelled, false, "thread t: 3 turns, $0.0123"},
	}
	for _, tt := range tests {
		w.put("t", tt.state, tt.change)
		got, _, err := w.Get(t.Context(), w.id(t, "t"))
		if err != nil || got.Status != tt.want || got.IsError != tt.isError || got.Message != tt.message || got.TTL != 25*time.Hour {
			t.Errorf("%s: %+v, %v", tt.state, got, err)
		}
		if _, has := got.Result.(view.Started); has != (tt.want == server.TaskCompleted) {
			t.Errorf("%s: the result is %v", tt.state, got.Result)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	w := newWorld("key")
	w.put("ended", thread.Completed, nil)
	w.put("running", thread.Running, nil)
	w.put("endless", thread.Completed, func(s *view.Standing) { s.Duration = 0 })
	w.now = began.Add(25 * time.Hour)
	for _, id := range []thread.ID{"ended", "running", "endless"} {
		if _, _, err := w.Get(t.Context(), w.id(t, id)); err != nil {
			t.Errorf("%s, in time: %v", id, err)
		}
	}
	w.now = w.now.Add(time.Second)
	_, _, err := w.Get(t.Context(), w.id(t, "ended"))
	refused(t, err)
	for _, id := range []thread.ID{"running", "endless"} {
		if _, _, err := w.Get(t.Context(), w.id(t, id)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestAttackGuessedTask: a client makes up ids of tasks from the ids of threads, or brings those of another project, of threads that were deleted and of times long past. All are refused in the same words.
func TestAttackGuessedTask(t *testing.T) {
	t.Parallel()
	w, other := newWorld("key"), newWorld("another key")
	w.put("plan-12", thread.Completed, nil)
	good := w.id(t, "plan-12")
	if _, _, err := w.Get(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	name, code, _ := strings.Cut(good, ".")
	padded := base64.URLEncoding.EncodeToString([]byte("plan-12"))
	words := map[string]bool{}
	for _, id := range []string{
		"", ".", "plan-12", name, name + ".", "." + code, name + "." + strings.ToUpper(code), name + "." + code + "0", name + "." + code[1:], good + ".", " " + good,
		padded + "." + code, name + "." + strings.Repeat("0", 32), other.id(t, "plan-12"), w.id(t, "deleted"), w.id(t, "../plan-12"), strings.Repeat("A", 5000) + "." + code,
	} {
		_, _, err := w.Get(t.Context(), id)
		words[refused(t, err)] = true
	}
	w.now = began.Add(1000 * time.Hour)
	_, _, err := w.Get(t.Context(), good)
	words[refused(t, err)] = true
	if len(words) != 1 {
		t.Errorf("the refusals differ: %v", words)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld("key")
		id, any := thread.ID(rapid.String().Draw(t, "thread")), rapid.String().Draw(t, "any")
		name := w.id(t, id)
		if got, err := w.Thread(name); err != nil || got != id {
			t.Fatalf("%q comes back as %q, %v", id, got, err)
		}
		if got, err := w.Thread(any); err == nil && w.id(t, got) != any {
			t.Fatalf("%q is taken for the task of %q", any, got)
		}
	})
}
