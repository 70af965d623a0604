// Package testrun is the tool rye/test/run: a command that the user's own settings
// declare for a project, by its name. A model chooses the name and nothing else, and
// there is no shell.
package testrun

import (
	"context"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	toolID = "rye/test/run"
	// defaultTime is that of a command that declares none.
	defaultTime = 10 * time.Minute
	// where the commands are declared
	declared = "tests in config/agent/tools.yaml"
)

// Deps is what the tool needs.
type Deps struct {
	// Tests are the user's, as they hold for a call: by name, by project.
	Tests   func() (map[string]map[string]config.TestCommand, error)
	Home    func() (string, error)
	Environ []string
}

type input struct {
	Name string `json:"name,omitempty" alias:"test" jsonschema:"left out: lists the names"`
}

// list is the answer to a call without a name.
type list struct {
	Tests []string `json:"tests"`
}

type output struct {
	Name       string  `json:"name"`
	Passed     bool    `json:"passed"`
	ExitCode   int     `json:"exit_code"` // -1 when a signal ended it
	Signal     string  `json:"signal,omitempty"`
	Seconds    float64 `json:"seconds"`
	Output     string  `json:"output"`
	LeftOut    int     `json:"left_out_bytes,omitempty"`
	attachment *tool.Attachment
}

// Attachments implements [tool.Attacher].
func (o output) Attachments() []tool.Attachment {
	if o.attachment == nil {
		return nil
	}
	return []tool.Attachment{*o.attachment}
}

// New returns the tool.
func New(deps Deps) tool.Tool {
	return tool.New(tool.Definition{
		ID:          toolID,
		Description: "Run a test command that the person has declared for this project. Returns exit code and the end of the output.",
		Paged:       true,
	}, deps.run)
}

func (d Deps) run(ctx context.Context, env tool.Env, in input) (any, error) {
	tests, err := d.testsOf(env.Project)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(tests))
	if in.Name == "" {
		return list{names}, nil
	}
	test, known := tests[in.Name]
	if !known {
		return nil, tool.Faultf(tool.CodeNotFound, "no such test is declared; valid are %s", strings.Join(names, ", ")).
			With("valid_names", names).WithHint("Call %s with one of these names.", toolID)
	}
	command, err := d.command(env, test)
	if err != nil {
		return nil, err
	}
	return execute(ctx, env, in.Name, command)
}

// testsOf are the commands of a project.
func (d Deps) testsOf(project string) (map[string]config.TestCommand, error) {
	if !filepath.IsAbs(project) {
		return nil, tool.Faultf(tool.CodeNoProject, "no project is known for this call").WithHint("Name the project with project_path.")
	}
	all, err := d.Tests()
	if err != nil {
		return nil, err
	}
	found := map[string]config.TestCommand{}
	for dir, tests := range all {
		if d.same(dir, project) {
			maps.Copy(found, tests)
		}
	}
	if len(found) == 0 {
		return nil, tool.Faultf(tool.CodeUnsupported, "the person has declared no test commands for this project").
			WithHint("Ask the person to declare one under tests in agent/tools.yaml of their user space, or run the tests with rye/bash if that is allowed.").
			WithTry("add the project to %s of your user space, for example\ntests:\n  %s:\n    unit: {command: [make, test]}", declared, project)
	}
	return found, nil
}

// same reports whether the settings mean this project by a path.
func (d Deps) same(dir, project string) bool {
	if rest, below := strings.CutPrefix(dir, "~/"); below {
		home, err := d.Home()
		if err != nil {
			return false
		}
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) {
		return false
	}
	a, errA := filepath.EvalSymlinks(dir)
	b, errB := filepath.EvalSymlinks(project)
	return errA == nil && errB == nil && a == b
}

// command is a declared command as it is started.
func (d Deps) command(env tool.Env, test config.TestCommand) (process.Command, error) {
	root, err := filepath.EvalSymlinks(env.Dir())
	if err != nil {
		return process.Command{}, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(root, test.WorkingDir))
	if err != nil || !pathname.Has(root, dir) {
		return process.Command{}, invalid("its working_dir is no folder of the project")
	}
	program := test.Command[0]
	switch {
	case filepath.IsAbs(program):
	case strings.ContainsRune(program, filepath.Separator):
		program = filepath.Join(dir, program)
	default:
		if program, err = exec.LookPath(program); err != nil {
			return process.Command{}, invalid("its program is not in the PATH of rye-mcp")
		}
	}
	timeout := defaultTime
	if test.Timeout > 0 {
		timeout = time.Duration(test.Timeout * float64(time.Second))
	}
	extra := []string{"NO_COLOR=1"}
	for _, name := range slices.Sorted(maps.Keys(test.Env)) {
		extra = append(extra, name+"="+test.Env[name])
	}
	if env.ThreadID != "" {
		extra = append(extra, process.Mark(env.Project, string(env.ThreadID))...)
	}
	if env.TraceID != "" {
		extra = append(extra, process.TraceVariable+"="+env.TraceID)
	}
	return process.Command{
		Path: program, Args: test.Command[1:], Dir: dir, Timeout: timeout, Env: process.ToolEnv(d.Environ, extra...),
	}, nil
}

func invalid(why string) error {
	return tool.Faultf(tool.CodeInvalidConfig, "the test command cannot be run: %s", why).WithHint("Tell the person to look at its settings.").
		WithTry("correct %s of your user space", declared)
}

func execute(ctx context.Context, env tool.Env, name string, command process.Command) (any, error) {
	printed := newTail(env)
	var to io.Writer = printed
	closing := func() error { return nil }
	if env.Mask != nil {
		masked := env.Mask.Writer(printed)
		to, closing = masked, masked.Close
	}
	command.Stdout, command.Stderr = to, to // one stream, in the order of writing
	result, err := process.Run(ctx, command)
	if err = errors.Join(err, closing()); err != nil {
		return nil, invalid("it does not start")
	}
	text, leftOut := printed.text()
	out := output{
		Name: name, Passed: result.ExitCode == 0, ExitCode: result.ExitCode, Signal: result.Signal, Seconds: result.Duration.Round(time.Millisecond).Seconds(),
		Output: text, LeftOut: leftOut, attachment: printed.attachment(),
	}
	switch {
	case result.TimedOut:
		return nil, tool.Faultf(tool.CodeTimeout, "the test did not end within %v and was stopped", command.Timeout).With("output", text).
			WithHint("Look where it hangs. The person can give it a longer timeout in the settings.")
	case result.Cancelled:
		return nil, tool.Faultf(tool.CodeCancelled, "the test was stopped because the call was cancelled").With("output", text)
	}
	return out, nil
}
