package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call runs rye/bash with arguments as a model gives them.
func call(ctx context.Context, t *testing.T, env tool.Env, args any) (output, *tool.Fault) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	result, err := New(nil).Call(ctx, env, raw)
	var fault *tool.Fault
	if errors.As(err, &fault) {
		return output{}, fault
	}
	if err != nil {
		t.Fatal(err)
	}
	return result.(output), nil
}

// bash runs a command that must not fail as a call.
func bash(t *testing.T, env tool.Env, command string) output {
	t.Helper()
	out, fault := call(t.Context(), t, env, map[string]any{"command": command})
	if fault != nil {
		t.Fatalf("%s: %v", command, fault)
	}
	return out
}

func project(t *testing.T) tool.Env {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tool.Env{Project: dir}
}

func TestResults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		command string
		want    output
	}{
		{"echo out; echo err >&2", output{Stdout: "out\n", Stderr: "err\n"}},
		{"exit 3", output{ExitCode: 3}},
		{"no-such-command 2>/dev/null", output{ExitCode: 127}},
		{"kill -9 $$", output{ExitCode: -1, Signal: "SIGKILL"}},
		{"cat", output{}}, // standard input is empty
		{"printf 'a\\377b'", output{Stdout: "a\uFFFDb"}},
		{"head -c 14336 /dev/zero | tr '\\0' x", output{Stdout: strings.Repeat("x", 14<<10)}},
	}
	for _, tt := range tests {
		got := bash(t, project(t), tt.command)
		got.DurationMS = 0
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.command, got, tt.want)
		}
	}
}

func TestResultOnTheWire(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(output{Stdout: "x"})
	want := `{"exit_code":0,"stdout":"x","stderr":"","truncated":false,"timed_out":false,"duration_ms":0}`
	if err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Required   []string
		Properties map[string]struct {
			Type        string
			Description string
			Default     any
		}
	}
	def := New(nil).Definition()
	if err := json.Unmarshal(def.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if def.ID != "rye/bash" || def.ReadOnly || def.Description == "" {
		t.Errorf("%+v", def)
	}
	if len(schema.Required) != 1 || schema.Required[0] != "command" || len(schema.Properties) != 3 ||
		schema.Properties["timeout"].Default != 120.0 || schema.Properties["working_dir"].Type != "string" {
		t.Errorf("%s", def.Schema)
	}
}

func TestLongOutputKeepsBothEnds(t *testing.T) {
	t.Parallel()
	got := bash(t, project(t), "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo last; echo short >&2")
	if !strings.HasPrefix(got.Stdout, "first\n") || !strings.HasSuffix(got.Stdout, "last\n") ||
		!strings.Contains(got.Stdout, " bytes left out ") || !got.Truncated || got.ExitCode != 0 {
		t.Errorf("%d bytes, truncated %v, exit code %d", len(got.Stdout), got.Truncated, got.ExitCode)
	}
	if len(got.Stdout) > 14<<10+100 || got.Stderr != "short\n" {
		t.Errorf("%d bytes, stderr %q", len(got.Stdout), got.Stderr)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	t.Setenv("RYE_PARENT_THREAD_ID", "somebody-1")
	t.Setenv("LC_TEST", "yes")
	env := project(t)
	print := `echo "$ANTHROPIC_API_KEY,$RYE_PARENT_THREAD_ID,$LC_TEST"; pwd -P`
	if got := bash(t, env, print).Stdout; got != ",,yes\n"+env.Project+"\n" {
		t.Errorf("outside threads: %q", got)
	}
	env.ThreadID = "a/b-1"
	if got := bash(t, env, print).Stdout; got != ",a/b-1,yes\n"+env.Project+"\n" {
		t.Errorf("in a thread: %q", got)
	}
}

func TestShellIsBashElseSh(t *testing.T) {
	env := project(t)
	if got := bash(t, env, "echo $((1+1))${BASH_VERSION:+ bash}").Stdout; got != "2 bash\n" {
		t.Errorf("%q", got)
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	if _, fault := call(t.Context(), t, env, map[string]any{"command": "true"}); fault == nil || fault.Code != tool.CodeUnsupported {
		t.Errorf("without a shell: %v", fault)
	}
	fake := []byte("#!/bin/sh\necho \"sh $2\"\n")
	if err := os.WriteFile(filepath.Join(bin, "sh"), fake, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := bash(t, env, "hello").Stdout; got != "sh hello\n" {
		t.Errorf("%q", got)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	_, fault := call(t.Context(), t, project(t), map[string]any{"command": "sleep 1000 & wait", "timeout": 0.05})
	if fault == nil || fault.Code != tool.CodeTimeout || fault.Hint == "" || !strings.Contains(fault.Message, "0.05 seconds") {
		t.Fatalf("%+v", fault)
	}
	if d := fault.Details; d["timed_out"] != true || d["exit_code"] != -1 || d["truncated"] != false {
		t.Errorf("%v", d)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	env := project(t)
	bash(t, env, "mkfifo started")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		// Waits until the command has the pipe open too.
		if _, err := os.ReadFile(filepath.Join(env.Project, "started")); err != nil {
			t.Error(err)
		}
	}()
	_, fault := call(ctx, t, env, map[string]any{"command": "echo out; echo err >&2; : > started; sleep 1000"})
	if fault == nil || fault.Code != tool.CodeCancelled {
		t.Fatalf("%+v", fault)
	}
	d := fault.Details
	if d["stdout"] != "out\n" || d["stderr"] != "err\n" || d["timed_out"] != false || d["signal"] != "SIGTERM" || d["exit_code"] != -1 {
		t.Errorf("%v", d)
	}
}

func TestBackgroundProcessesEndWithTheCommand(t *testing.T) {
	t.Parallel()
	env := project(t)
	bash(t, env, "mkfifo pipe")
	done := make(chan []byte, 1)
	go func() {
		b, err := os.ReadFile(filepath.Join(env.Project, "pipe"))
		if err != nil {
			t.Error(err)
		}
		done <- b
	}()
	// The reader sees the end of the file when the last writer is gone: the
	// background process, which has inherited descriptor 3.
	bash(t, env, "exec 3>pipe; echo x >&3; sleep 1000 >/dev/null 2>&1 & true")
	select {
	case b := <-done:
		if !bytes.Equal(b, []byte("x\n")) {
			t.Errorf("%q", b)
		}
	case <-time.After(time.Minute):
		t.Error("the background process is still there")
	}
}

// TestEscapes: a command that leaves something behind, with its output open, does
// not hold up the call; what left the group is known by its thread's mark.
func TestEscapes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux the environment of another process can be read")
	}
	for name, leave := range map[string]string{
		"nohup":         "nohup sleep 1000 & echo $! > pid",
		"double fork":   "(sleep 1000 & echo $! > pid)",
		"session":       "setsid sh -c 'echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do :; done",
		"closes output": "exec 3>&1; setsid sh -c 'echo $$ > pid; exec sleep 1000' >&- 2>&- & while ! [ -s pid ]; do :; done; exec 3>&-",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := project(t)
			env.ThreadID = "test/escape-1"
			got := bash(t, env, leave+"; echo said")
			if got.ExitCode != 0 || got.Stdout != "said\n" || got.TimedOut {
				t.Errorf("%+v", got)
			}
			if err := process.KillLeftovers(t.Context(), process.Mark(env.Project, string(env.ThreadID))); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(env.Project, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			// One that is about to end has no environment any more to be known by.
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			select {
			case <-process.Watch(ctx, pid):
			case <-ctx.Done():
				t.Errorf("process %d is still there", pid)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	env := project(t)
	tests := []struct {
		name string
		args map[string]any
		code tool.Code
	}{
		{"no command", map[string]any{}, tool.CodeBadArguments},
		{"blank command", map[string]any{"command": " \n"}, tool.CodeBadArguments},
		{"NUL", map[string]any{"command": "echo \x00"}, tool.CodeBadArguments},
		{"too long", map[string]any{"command": ": " + strings.Repeat("x", 4<<20)}, tool.CodeBadArguments},
		{"no time", map[string]any{"command": "true", "timeout": 0}, tool.CodeBadArguments},
		{"negative time", map[string]any{"command": "true", "timeout": -1}, tool.CodeBadArguments},
		{"endless time", map[string]any{"command": "true", "timeout": 1e300}, tool.CodeBadArguments},
		{"time as text", map[string]any{"command": "true", "timeout": "soon"}, tool.CodeBadArguments},
		{"unknown parameter", map[string]any{"command": "true", "cwd": "."}, tool.CodeBadArguments},
	}
	for _, tt := range tests {
		if _, fault := call(t.Context(), t, env, tt.args); fault == nil || fault.Code != tt.code {
			t.Errorf("%s: %v, want %s", tt.name, fault, tt.code)
		}
	}
	if _, fault := call(t.Context(), t, tool.Env{}, map[string]any{"command": "true"}); fault == nil || fault.Code != tool.CodeNoProject {
		t.Errorf("no project: %v", fault)
	}
}
