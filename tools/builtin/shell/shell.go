// Package shell is the built-in tool rye/bash: a shell command in the project.
package shell

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	toolID = "rye/bash"

	// maxTimeout is the longest time a call may ask for, in seconds: a day.
	maxTimeout = 24 * 60 * 60
)

const description = "Run a shell command (bash, or sh) in the project and wait for it. A non-zero exit_code is a normal result. " +
	"stdout and stderr are cut to 14 KiB each, keeping both ends. There is no input and no terminal; what is left in the " +
	"background is killed when the command ends."

type input struct {
	Command    string  `json:"command"`
	Timeout    float64 `json:"timeout,omitempty" jsonschema:"seconds" default:"120"`
	WorkingDir string  `json:"working_dir,omitempty" jsonschema:"inside the project" default:"."`
}

// output is the result of a call, and what is known of a command that was
// stopped.
type output struct {
	ExitCode   int    `json:"exit_code"`        // -1 when a signal ended the shell
	Signal     string `json:"signal,omitempty"` // that signal
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	Truncated  bool   `json:"truncated"` // the middle of stdout or stderr was left out
	TimedOut   bool   `json:"timed_out"`
	DurationMS int64  `json:"duration_ms"`
}

// New returns the tool rye/bash. Confine bounds what a command may reach, before it is
// started; nil: nothing does.
func New(confine func(context.Context, tool.Env, *process.Command) error) tool.Tool {
	return tool.New(tool.Definition{ID: toolID, Description: description, CommandLine: "command"}, shell{confine}.run)
}

type shell struct {
	confine func(context.Context, tool.Env, *process.Command) error
}

func (s shell) run(ctx context.Context, env tool.Env, in input) (any, error) {
	command, err := build(env, in)
	if err != nil {
		return nil, err
	}
	if s.confine != nil {
		if err := s.confine(ctx, env, &command); err != nil {
			return nil, err
		}
	}
	stdout, stderr := newStream(env), newStream(env)
	result, err := runInto(ctx, env, command, stdout, stderr)
	if errors.Is(err, syscall.E2BIG) {
		return nil, tool.Faultf(tool.CodeBadArguments, "command is too long for this system (%d bytes)", len(in.Command)).
			WithHint("Write it to a script with rye/file-system/write and run the script.")
	}
	if err != nil {
		return nil, err
	}
	out := output{
		ExitCode:   result.ExitCode,
		Signal:     result.Signal,
		Stdout:     stdout.String(),
		Stderr:     stderr.String(),
		Truncated:  stdout.Cut() || stderr.Cut(),
		TimedOut:   result.TimedOut,
		DurationMS: result.Duration.Milliseconds(),
	}
	switch {
	case result.TimedOut:
		return nil, out.attach(tool.Faultf(tool.CodeTimeout, "the command did not end within %v seconds and was stopped", in.Timeout).
			WithHint("Call %s again with a larger timeout (in seconds), or split the command.", toolID))
	case result.Cancelled:
		return nil, out.attach(tool.Faultf(tool.CodeCancelled, "the command was stopped because the call was cancelled"))
	}
	return out.attaching(stdout, stderr), nil
}

// runInto runs a command whose output goes to two streams, masked.
func runInto(ctx context.Context, env tool.Env, command process.Command, stdout, stderr io.Writer) (process.Result, error) {
	command.Stdout, command.Stderr = stdout, stderr
	if env.Mask == nil {
		return process.Run(ctx, command)
	}
	maskedOut, maskedErr := env.Mask.Writer(stdout), env.Mask.Writer(stderr)
	command.Stdout, command.Stderr = maskedOut, maskedErr
	result, err := process.Run(ctx, command)
	return result, errors.Join(err, maskedOut.Close(), maskedErr.Close())
}

// attach adds the output so far to the details of a fault.
func (o output) attach(f *tool.Fault) *tool.Fault {
	f = f.With("exit_code", o.ExitCode).With("stdout", o.Stdout).With("stderr", o.Stderr).
		With("truncated", o.Truncated).With("timed_out", o.TimedOut).With("duration_ms", o.DurationMS)
	if o.Signal != "" {
		f = f.With("signal", o.Signal)
	}
	return f
}

// build checks the input and makes the command of it.
func build(env tool.Env, in input) (process.Command, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return process.Command{}, tool.Faultf(tool.CodeBadArguments, "command is empty")
	case strings.ContainsRune(in.Command, 0):
		return process.Command{}, tool.Faultf(tool.CodeBadArguments, "command contains a NUL byte")
	case in.Timeout <= 0 || in.Timeout > maxTimeout:
		return process.Command{}, tool.Faultf(tool.CodeBadArguments,
			"timeout is %v; it must be more than 0 and at most %d seconds", in.Timeout, maxTimeout)
	}
	if env.Masked(in.WorkingDir) != in.WorkingDir {
		return process.Command{}, tool.Faultf(tool.CodeBadArguments, "working_dir cannot hold a secret")
	}
	dir, err := workingDir(env.Dir(), env.Here(in.WorkingDir))
	if err != nil {
		return process.Command{}, err
	}
	shell, err := findShell()
	if err != nil {
		return process.Command{}, err
	}
	command := process.Command{
		Path:    shell,
		Args:    []string{"-c", in.Command},
		Env:     environment(env),
		Dir:     dir,
		Timeout: time.Duration(math.Ceil(in.Timeout * float64(time.Second))),
	}
	if env.Mask != nil {
		command.Args[1], command.Stdin = fromInput, []byte(in.Command)
	}
	return command, nil
}

// fromInput runs the command that stands on the standard input, as if it stood
// here, where every user of the machine could read it.
const fromInput = `eval "$(cat)" </dev/null`

// environment names the thread to what the command starts, so that a thread
// started from there is this thread's child.
func environment(env tool.Env) []string {
	if env.ThreadID == "" {
		return process.ToolEnv(os.Environ())
	}
	extra := process.Mark(env.Project, string(env.ThreadID))
	if env.TraceID != "" {
		extra = append(extra, process.TraceVariable+"="+env.TraceID)
	}
	return process.ToolEnv(os.Environ(), extra...)
}

func findShell() (string, error) {
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", tool.Faultf(tool.CodeUnsupported, "neither bash nor sh is in the PATH of rye-mcp")
}
