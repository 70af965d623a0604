package system

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func deps(threads ...Thread) Deps {
	return Deps{
		Version: "v1", User: "/home/ada", Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Limits:  func() (item.LimitSet, int, error) { return item.LimitSet{"turns": 15}, 64, nil },
		Threads: func(context.Context) ([]Thread, error) { return threads, nil },
	}
}

// says is the answer of a tool as JSON.
func says(t *testing.T, of tool.Tool, project, args string) string {
	t.Helper()
	got, err := of.Call(t.Context(), tool.Env{Project: project}, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSystem(t *testing.T) {
	t.Setenv("MY_API_KEY", "sk-secret")
	system := systemTool(deps())
	all := says(t, system, "/work/app", `{}`)
	for _, want := range []string{`"project":"/work/app"`, `"user_space":"/home/ada"`, `"utc":"2026-01-02T03:04:05Z"`, `"rye_mcp":"v1"`, `"os":"` + runtime.GOOS, `"turns":15`, `"threads_at_once":64`, `"git":`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if strings.Contains(all, "sk-secret") {
		t.Error(all)
	}
	if got := says(t, system, "/work/app", `{"item": "time"}`); strings.Contains(got, "paths") || !strings.Contains(got, "utc") {
		t.Error(got)
	}
	if _, err := system.Call(t.Context(), tool.Env{}, json.RawMessage(`{"item": "environment"}`)); tool.AsFault(err).Code != tool.CodeBadArguments {
		t.Error(err)
	}
}

// TestProcesses: what the tools of a thread have started is found by its mark, and
// nothing else is.
func TestProcesses(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	start := func(mark ...string) int {
		cmd := exec.CommandContext(t.Context(), "sleep", "60")
		cmd.Env = append(os.Environ(), mark...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd.Process.Pid
	}
	mine := start(append(process.Mark(project, "t-1"), "SECRET=sk-secret")...)
	start(process.Mark(t.TempDir(), "t-1")...)
	start(process.Mark(project, "t-9")...)
	start()
	threads := processesTool(deps(Thread{ID: "t-1", Item: "a/b", Status: "running", PID: os.Getpid()}, Thread{ID: "t-2", Item: "c/d", Status: "queued"}))
	text := says(t, threads, project, `{"thread_id": "t-1"}`)
	var got processesOutput
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Threads) != 1 || strings.Contains(text, "secret") {
		t.Fatalf("%s, %v", text, err)
	}
	if tools := got.Threads[0].Tools; runtime.GOOS == "linux" && (len(tools) != 1 || tools[0] != Tool{mine, "sleep"}) {
		t.Errorf("tools %v, want %d", tools, mine)
	}
	if text := says(t, threads, project, `{}`); strings.Count(text, "thread_id") != 2 {
		t.Error(text)
	}
	if _, err := threads.Call(t.Context(), tool.Env{Project: project}, json.RawMessage(`{"run_id": "t-3"}`)); tool.AsFault(err).Code != tool.CodeNotFound {
		t.Error(err)
	}
}
