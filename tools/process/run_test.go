//go:build linux || darwin

package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func sh(script string) Command {
	return Command{Path: "sh", Args: []string{"-c", script}, Env: ToolEnv(os.Environ())}
}

func TestRun(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	tests := []struct {
		name    string
		command Command
		want    Result
	}{
		{"both streams", sh("echo out; echo err >&2"), Result{Stdout: []byte("out\n"), Stderr: []byte("err\n")}},
		{"exit code", sh("exit 7"), Result{ExitCode: 7}},
		{"own signal", sh("kill -9 $$"), Result{ExitCode: -1, Signal: "SIGKILL"}},
		{"input", Command{Path: "cat", Stdin: []byte(`{"a":1}`)}, Result{Stdout: []byte(`{"a":1}`)}},
		{"no input", Command{Path: "cat"}, Result{}},
		{"input that nobody reads", Command{Path: "true", Stdin: bytes.Repeat([]byte("x"), 1<<20)}, Result{}},
		{"empty environment", Command{Path: "env"}, Result{}},
		{"environment", Command{Path: "env", Env: []string{"A=1"}}, Result{Stdout: []byte("A=1\n")}},
		{"folder", Command{Path: "pwd", Args: []string{"-P"}, Dir: dir}, Result{Stdout: []byte(dir + "\n")}},
		{"exactly the cap", Command{Path: "echo", Args: []string{"abc"}, MaxOutput: 4}, Result{Stdout: []byte("abc\n")}},
		{"over the cap", Command{Path: "echo", Args: []string{"abc"}, MaxOutput: 3}, Result{Stdout: []byte("abc"), Truncated: true}},
		{"negative cap", Command{Path: "echo", Args: []string{"abc"}, MaxOutput: -1}, Result{Stdout: []byte("abc\n")}},
		{"time to spare", func() Command { c := sh("echo x"); c.Timeout = patience; return c }(), Result{Stdout: []byte("x\n")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Run(t.Context(), tt.command)
			must(t, err)
			if got.Duration <= 0 {
				t.Error("no duration")
			}
			if !bytes.Equal(got.Stdout, tt.want.Stdout) || !bytes.Equal(got.Stderr, tt.want.Stderr) ||
				got.ExitCode != tt.want.ExitCode || got.Signal != tt.want.Signal || got.Truncated != tt.want.Truncated ||
				got.TimedOut || got.Cancelled {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestRunCannotStart(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []Command{{Path: missing}, {Path: "no-such-program-anywhere"}, {Path: "true", Dir: missing}} {
		_, err := Run(t.Context(), c)
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s in %q: %v", c.Path, c.Dir, err)
		}
	}
}

func TestRunBoundsItsMemory(t *testing.T) {
	t.Parallel()
	got, err := Run(t.Context(), sh("head -c 50000000 /dev/zero; echo done >&2"))
	must(t, err)
	if len(got.Stdout) != DefaultMaxOutput || cap(got.Stdout) > 2*DefaultMaxOutput || !got.Truncated {
		t.Errorf("%d bytes (capacity %d), truncated %v", len(got.Stdout), cap(got.Stdout), got.Truncated)
	}
	// The command was not held up by what nobody keeps.
	if got.ExitCode != 0 || string(got.Stderr) != "done\n" {
		t.Errorf("exit code %d, stderr %q", got.ExitCode, got.Stderr)
	}
}

func TestRunWritesElsewhere(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	c := sh("echo out; echo err >&2")
	c.Stdout, c.Stderr, c.MaxOutput = &out, &errs, 1
	got, err := Run(t.Context(), c)
	must(t, err)
	if out.String() != "out\n" || errs.String() != "err\n" || got.Truncated || got.Stdout != nil {
		t.Errorf("%q %q %+v", out.String(), errs.String(), got)
	}
	broken := errors.New("disk full")
	c.Stdout = writerFunc(func([]byte) (int, error) { return 0, broken })
	if _, err = Run(t.Context(), c); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type outcome struct {
	Result
	err error
}

// runHelper runs a helper and returns it with the channel for its outcome.
func runHelper(ctx context.Context, h *hub, grace time.Duration) (*peer, <-chan outcome) {
	h.t.Helper()
	done := make(chan outcome, 1)
	c := h.helper().command("tool")
	c.Grace = grace
	go func() {
		r, err := Run(ctx, c)
		done <- outcome{r, err}
	}()
	return h.peer("tool"), done
}

func (h *hub) outcome(done <-chan outcome) Result {
	h.t.Helper()
	select {
	case o := <-done:
		must(h.t, o.err)
		return o.Result
	case <-time.After(patience):
		h.t.Fatal("Run does not return")
		return Result{}
	}
}

func TestRunWithClosedOutput(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	tool, done := runHelper(t.Context(), hub, 0)
	tool.want("close-output", "ok")
	tool.want("ping", "pong")
	tool.send("exit 5")
	if got := hub.outcome(done); got.ExitCode != 5 {
		t.Errorf("%+v", got)
	}
}

func TestRunTimesOut(t *testing.T) {
	t.Parallel()
	c := sh("sleep 1000")
	for _, c.Timeout = range []time.Duration{50 * time.Millisecond, time.Nanosecond} { // the latter is over before the start
		got, err := Run(t.Context(), c)
		must(t, err)
		if !got.TimedOut || got.Cancelled || got.ExitCode != -1 {
			t.Errorf("%s: %+v", c.Timeout, got)
		}
	}
}

func TestRunIsCancelled(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		hub := newHub(t)
		ctx, cancel := context.WithCancel(t.Context())
		grace, signal := patience, "SIGTERM"
		if deaf {
			grace, signal = brief, "SIGKILL"
		}
		tool, done := runHelper(ctx, hub, grace)
		tool.want("start child", "ok")
		child := hub.peer("child")
		if deaf {
			tool.want("ignore", "ok")
			child.want("ignore", "ok")
		}
		tool.want("say before", "ok")
		cancel()
		got := hub.outcome(done)
		if !got.Cancelled || got.TimedOut || got.Signal != signal || got.ExitCode != -1 || string(got.Stdout) != "before\n" {
			t.Errorf("deaf %v: %+v", deaf, got)
		}
		tool.dies()
		child.dies()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	marker := filepath.Join(t.TempDir(), "ran")
	got, err := Run(ctx, sh("touch "+marker))
	must(t, err)
	if _, err := os.Stat(marker); !got.Cancelled || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRunKillsWhatIsLeftOfTheGroup(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	tool, done := runHelper(t.Context(), hub, brief)
	tool.want("start child", "ok")
	child := hub.peer("child") // holds standard output open
	child.want("ignore", "ok")
	tool.send("exit 4")
	if got := hub.outcome(done); got.ExitCode != 4 || got.Cancelled || got.TimedOut {
		t.Errorf("%+v", got)
	}
	child.dies()
}

func TestRunDoesNotWaitForWhoEscaped(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	tool, done := runHelper(t.Context(), hub, brief)
	tool.want("start daemon session", "ok")
	daemon := hub.peer("daemon")
	tool.want("say hello", "ok")
	tool.send("exit 0")
	if got := hub.outcome(done); got.ExitCode != 0 || string(got.Stdout) != "hello\n" {
		t.Errorf("%+v", got)
	}
	daemon.want("ping", "pong") // it had standard output open all the time
	daemon.kill()
}

func TestRunDiesWithItsCaller(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent death signal")
	}
	hub := newHub(t)
	started, err := Detach(hub.helper().spec("caller", nil))
	must(t, err)
	caller := hub.peer("caller")
	caller.want("run tool", "ok")
	tool := hub.peer("tool")
	tool.want("ignore", "ok")
	caller.kill()
	tool.dies()
	arrives(t, "end", started.Done())
}
