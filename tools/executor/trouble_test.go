package executor_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// sh is a tool that runs a line of the shell.
func sh(line string, more ...string) string {
	raw, err := json.Marshal([]string{"-c", line})
	if err != nil {
		panic(err)
	}
	return "executor_id: subprocess\nconfig:\n  command: sh\n  args: " + string(raw) + "\n" + strings.Join(more, "\n")
}

// TestTroublesomeTools runs tools that do not do as they should.
func TestTroublesomeTools(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		tool string
		code tool.Code // empty: want is the result
		want string
	}{
		"prints 50 MB":                  {sh("head -c 50000000 /dev/zero | tr '\\0' x"), tool.CodeToolFailed, "printed more than 10485760 bytes"},
		"prints without end":            {sh("yes"), tool.CodeToolFailed, "printed more than"},
		"diagnoses without end":         {sh("i=0; while [ $i -lt 3000 ]; do echo 'line of diagnostics that says little' >&2; i=$((i+1)); done; exit 3"), tool.CodeToolFailed, "exit code 3: line of diagnostics"},
		"closes its output":             {sh("exec >&-; echo lost"), tool.CodeToolFailed, "exit code"},
		"closes its output and is well": {sh("exec >&-; exit 0"), "", "null"},
		"does not read its input":       {sh("echo 1"), "", "1"},
		"answers invalid JSON":          {sh(`echo '{"a":'`), "", `"{\"a\":"`},
		"answers two values":            {sh(`echo '{"a":1}'; echo '{"b":2}'`), "", `[{"a":1},{"b":2}]`},
		"answers in lines of JSON":      {sh(`echo '{"success":true}'; echo '{"success":false,"error":"one of many"}'`), "", `[{"success":true},{"error":"one of many","success":false}]`},
		"answers in lines with a head":  {sh(`echo found; echo '{"a":1}'; echo '{"b":2}'`), "", `"found\n{\"a\":1}\n{\"b\":2}"`},
		"prints what failed elsewhere":  {sh(`echo 'Log:'; echo '{"success":false,"error":"elsewhere"}'`), "", `{"error":"elsewhere","success":false}`},
		"answers below what it prints":  {sh(`echo 'Loading…'; echo '{'; echo '"b": [2]'; echo '}'`), "", `{"b":[2]}`},
		"answers invalid UTF-8":         {sh(`printf 'caf\351 au lait'`), "", "\"caf\uFFFD au lait\""},
		"answers in no language":        {sh(`head -c 2000 /dev/zero`), tool.CodeToolFailed, "neither JSON nor text"},
		"answers a large number":        {sh(`echo 12345678901234567890`), "", `12345678901234567890`},
		"says that it failed":           {sh(`echo '{"success": false, "error": "no such city", "city": "x"}'`), tool.CodeToolFailed, "a/t failed: no such city"},
		"fails and says why":            {sh(`echo '{"success": false, "error": "no such city"}'; exit 2`), tool.CodeToolFailed, "a/t failed: no such city"},
		"fails with its last words":     {sh(`echo first >&2; echo 'last words' >&2; exit 4`), tool.CodeToolFailed, "ended with exit code 4: last words"},
		"kills itself":                  {sh(`kill -9 $$`), tool.CodeToolFailed, "was ended by SIGKILL"},
		"hangs":                         {sh(`sleep 1000`, "  timeout: 0.2"), tool.CodeTimeout, "did not end within 0.2 seconds"},
		"hangs for its children":        {sh(`sleep 1000 & sleep 1000`, "  timeout: 0.2"), tool.CodeTimeout, "did not end within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a/t.yaml", c.tool)
			got, err := b.run("a/t", `{}`)
			if c.code != "" {
				f := b.fault(err, c.code, c.want)
				if raw, err := json.Marshal(f.Body()); err != nil || len(raw) > 5000 {
					t.Errorf("the fault takes %d bytes, %v", len(raw), err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// A failure tells what the tool has printed: its end, and without secrets.
func TestOutputOfAFailedTool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, file string
		want       string // empty: nothing
	}{
		"a shell":    {sh(`echo "FAIL TestX: the word is le""mon"; echo 'exit status 1' >&2; exit 1`), "t.yaml", "FAIL TestX: the word is {secret:x}"},
		"a script":   {"echo lemon\necho why >&2\nexit 3\n", "t.sh", "{secret:x}"},
		"a time-out": {sh(`echo begun; sleep 1000`, "  timeout: 1"), "t.yaml", "begun"},
		"a long one": {sh(`i=0; while [ $i -lt 400 ]; do echo "line $i"; i=$((i+1)); done; exit 1`), "t.yaml", "line 399"},
		"no text":    {sh(`head -c 2000 /dev/zero; exit 1`), "t.yaml", ""},
		"an answer":  {sh(`echo '{"a":1}'; exit 1`), "t.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("a/"+c.file, c.tool)
			_, err := b.runAs(tool.Env{Mask: masked{"lemon"}}, "a/t", `{}`)
			printed, _ := tool.AsFault(err).Details["stdout"].(string)
			if (printed == "") != (c.want == "") || !strings.HasSuffix(printed, c.want) || len(printed) > 2100 {
				t.Errorf("got %q (%v), want %q", printed, err, c.want)
			}
		})
	}
}

// What a tool prints before its result is kept beside it.
func TestTextBeforeTheResult(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/t.yaml", sh(`printf 'first\nsecond\n[1, 2,\n3]\n'`))
	found, err := b.find("a/t")
	if err != nil {
		t.Fatal(err)
	}
	result, err := b.Run(t.Context(), found, executor.Call{Env: tool.Env{Project: b.project}})
	raw, marshalErr := json.Marshal(result)
	beside := tool.AttachmentsOf(result)
	if err != nil || marshalErr != nil || string(raw) != "[1,2,3]" || len(beside) != 1 || string(beside[0].Data) != "first\nsecond" {
		t.Errorf("got %s, %v beside it; %v", raw, beside, err)
	}
}

// A tool that hangs before it does anything, and one that ignores what it is told.
func TestStubbornTools(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	for name, text := range map[string]string{
		"hangs at import": "import time\ntime.sleep(1000)\ndef execute(params, project_path): return 1\n",
		"ignores SIGTERM": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef execute(params, project_path):\n    while True: time.sleep(1000)\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.put("lang/r.yaml", "tool_type: runtime\nexecutor_id: rye/core/runtimes/python/function\nconfig: {timeout: 0.5}\n")
			b.put("a/t.py", "__executor_id__ = 'lang/r'\n"+text)
			_, err := b.run("a/t", `{}`)
			b.refused(err, tool.CodeTimeout, "did not end within")
		})
	}
}

// TestAttackToolThatForksAway: a tool leaves a process behind that holds its output open, and answers. The call ends with the answer, and the process is gone.
func TestAttackToolThatForksAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/t.yaml", sh(`sleep 1000 & echo "$!"`))
	got, err := b.run("a/t", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(got)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// gone waits for the end of a process that has been killed.
func gone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	select {
	case <-process.Watch(ctx, pid):
	case <-ctx.Done():
		t.Errorf("process %d lives", pid)
	}
}

// A call that is cancelled stops the tool with all its processes.
func TestCancelStopsTheGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a/t.yaml", sh(`sleep 1000 & echo "$!" > pid; wait`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pipe := filepath.Join(b.project, "pid")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	go func() {
		content, _ := os.ReadFile(pipe) // waits for the tool
		cancel()
		told <- strings.TrimSpace(string(content))
	}()
	_, err := b.runIn(ctx, tool.Env{}, "a/t", `{}`)
	b.refused(err, tool.CodeCancelled, "stopped because the call was cancelled")
	pid, err := strconv.Atoi(<-told)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
}

// masked hides one word.
type masked struct{ word string }

func (m masked) Mask(text string) string      { return strings.ReplaceAll(text, m.word, "{secret:x}") }
func (m masked) MaskLines(text string) string { return m.Mask(text) }
func (m masked) Writer(w io.Writer) io.WriteCloser {
	return struct {
		io.Writer
		io.Closer
	}{w, io.NopCloser(nil)}
}

// TestAttackSecretInArguments: a tool's runtime puts a parameter, which holds a secret of the thread, into arguments or environment of a process, where every user of the machine could read it. The call is refused, and the same secret on standard input reaches the tool.
func TestAttackSecretInArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const parameters = "parameters: [{name: token, type: string}]\n"
	b.put("a/argument.yaml", "executor_id: subprocess\nconfig: {command: echo, args: ['{token}']}\n"+parameters)
	b.put("a/all.yaml", "executor_id: subprocess\nconfig: {command: echo, args: ['{params_json}']}\n"+parameters)
	b.put("a/env.yaml", "executor_id: subprocess\nconfig: {command: env, env: {T: '{token}'}}\n"+parameters)
	b.put("a/input.yaml", "executor_id: subprocess\nconfig: {command: cat}\n"+parameters)
	env := tool.Env{Mask: masked{"hunter2"}}
	for _, id := range []string{"a/argument", "a/all", "a/env"} {
		_, err := b.runAs(env, id, `{"token":"a hunter2 b"}`)
		if f := b.fault(err, tool.CodeUnsupported, "where others can read it"); strings.Contains(f.Message, "hunter2") {
			t.Errorf("%s: %s", id, f.Message)
		}
		if _, err := b.runAs(env, id, `{"token":"plain"}`); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if got, err := b.runAs(env, "a/input", `{"token":"hunter2"}`); err != nil || got != `{"token":"hunter2"}` {
		t.Errorf("%s, %v", got, err)
	}
	_, err := b.run("a/argument", `{"token":"`+strings.Repeat("x", 70<<10)+`"}`)
	b.refused(err, tool.CodeBadArguments, "bytes long")
}

const warmTool = `__warm__ = True
import os
count = 0

def execute(params, project_path):
    globals()["count"] += 1
    if params.get("do") == "die": os._exit(3)
    if params.get("do") == "raise": raise ValueError("no")
    if params.get("do") == "hang":
        while True: pass
    print("not a result")
    return [count, os.getpid()]
`

// count is the call and the process of an answer of the warm tool.
func (b *bench) count(env tool.Env) (calls, pid int) {
	b.t.Helper()
	got, err := b.runAs(env, "a/t", `{}`)
	var answer []int
	if err == nil {
		err = json.Unmarshal([]byte(got), &answer)
	}
	if err != nil || len(answer) != 2 {
		b.t.Fatalf("%s, %v (%+v)", got, err, tool.AsFault(err))
	}
	return answer[0], answer[1]
}

func TestWarmTool(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	b.put("a/t.py", warmTool)
	thread, other := tool.Env{ThreadID: "a/b-1"}, tool.Env{ThreadID: "a/b-2"}
	_, first := b.count(thread)
	if calls, pid := b.count(thread); calls != 2 || pid != first {
		t.Errorf("call %d by %d, want 2 by %d", calls, pid, first)
	}
	if calls, pid := b.count(other); calls != 1 || pid == first {
		t.Error("two threads share a process")
	}
	if calls, _ := b.count(tool.Env{}); calls != 1 {
		t.Error("a call outside threads is kept warm")
	}
	_, err := b.runAs(thread, "a/t", `{"do":"raise"}`)
	b.refused(err, tool.CodeToolFailed, "a/t failed: ValueError: no")
	if calls, pid := b.count(thread); calls != 4 || pid != first {
		t.Errorf("after an exception: call %d by %d", calls, pid)
	}
	_, err = b.runAs(thread, "a/t", `{"do":"die"}`)
	b.refused(err, tool.CodeToolFailed, "exit code 3")
	calls, second := b.count(thread)
	if calls != 1 || second == first {
		t.Error("a process that died answers")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = b.runIn(ctx, thread, "a/t", `{"do":"hang"}`)
	b.refused(err, tool.CodeCancelled, "stopped")
	gone(t, second)
	_, third := b.count(thread)
	b.put("a/t.py", warmTool+"count = 100\n")
	if calls, pid := b.count(thread); calls != 101 || pid == third {
		t.Errorf("after a change: call %d by %d", calls, pid)
	}
	_, last := b.count(thread)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	gone(t, last)
}

// TestAttackWarmToolChanged: the file of a tool that is kept warm is changed after it was signed. The next call is refused, though the process that runs would not notice.
func TestAttackWarmToolChanged(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	needs(t, "python3")
	b := newBench(t)
	path := b.put("a/t.py", warmTool)
	thread := tool.Env{ThreadID: "a/b-1"}
	b.count(thread)
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(content, "count = 7\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.runAs(thread, "a/t", `{}`); err == nil {
		t.Errorf("got %s", got)
	}
}

// BenchmarkRatioPython measures calls of a Python function against the interpreter
// itself, and against each other.
func BenchmarkRatioPython(b *testing.B) {
	needs(b, "python3")
	bench := newBench(b)
	bench.put("a/cold.py", "def execute(params, project_path): return 1\n")
	bench.put("a/warm.py", "__warm__ = True\ndef execute(params, project_path): return 1\n")
	python, err := exec.LookPath("python3")
	if err != nil {
		b.Fatal(err)
	}
	bare := func() {
		if _, err := process.Run(b.Context(), process.Command{Path: python, Args: []string{"-c", "print(1)"}, Env: process.ToolEnv(os.Environ())}); err != nil {
			b.Fatal(err)
		}
	}
	call := func(id string) func() {
		return func() {
			t, err := bench.find(id)
			if err == nil {
				_, err = bench.Run(b.Context(), t, executor.Call{Env: tool.Env{ThreadID: "a/b-1", Project: bench.project}})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	cold, warm := call("a/cold"), call("a/warm")
	warm()
	for _, row := range []struct {
		name          string
		measured, one func()
		goal          float64
	}{
		{"call of a Python function/python3 -c itself/nothing is written", cold, bare, 3},
		{"call of a Python function that is kept warm/its first call/nothing is written", warm, cold, 0.1},
	} {
		b.Run(row.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(median(row.measured)/median(row.one), "x-baseline")
			}
			b.ReportMetric(row.goal, "x-goal")
		})
	}
}

// median is how long a call takes, of a few.
func median(call func()) float64 {
	var took []time.Duration
	for range 15 {
		began := time.Now()
		call()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2].Seconds()
}

// BenchmarkFind measures how long it takes to find a tool and to verify all that it needs,
// at each call.
func BenchmarkFind(b *testing.B) {
	bench := newBench(b)
	bench.put("a/t.py", "def execute(params, project_path): return 1\n")
	for b.Loop() {
		if _, err := bench.find("a/t"); err != nil {
			b.Fatal(err)
		}
	}
}
