// Package subprocess is the primitive that runs tools as processes: parameters go in
// as JSON on standard input, and what comes out on standard output is the result.
package subprocess

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// defaultTimeout is how long a tool may take that says nothing of it.
	defaultTimeout = 300 * time.Second
	// maxOutput is how much a tool may print.
	maxOutput = 10 << 20
	// maxArgument is how long one argument may be. The system's own bound is twice as
	// high, and its error says nothing of parameters.
	maxArgument = 64 << 10
)

// Primitive runs tools as processes.
type Primitive struct {
	// Confine bounds what a command may reach. It is called right before a command is
	// started, and not for a call of one that runs. Nil: nothing is confined.
	Confine func(context.Context, *chain.Plan, *process.Command) error

	warm workers
}

var _ chain.Primitive = (*Primitive)(nil)

// Close ends the processes that are kept warm.
func (p *Primitive) Close() error { return p.warm.close() }

// Check implements [chain.Primitive].
func (p *Primitive) Check(c *chain.Chain) (notes []string, err error) {
	if note := misfit(c); note != "" {
		notes = append(notes, c.Tool().ID+" "+note)
	}
	return notes, c.CheckCommand()
}

// Run implements [chain.Primitive].
func (p *Primitive) Run(ctx context.Context, plan *chain.Plan) (any, error) {
	warm := plan.Warm && plan.Call.ThreadID != "" && plan.Config["warm_args"] != nil
	command, err := commandOf(plan, warm)
	if err != nil {
		return nil, err
	}
	confine := func(c *process.Command) error {
		if p.Confine == nil {
			return nil
		}
		return p.Confine(ctx, plan, c)
	}
	if warm {
		return p.warm.call(ctx, plan, command, confine)
	}
	if err := confine(&command); err != nil {
		return nil, err
	}
	return runOnce(ctx, plan, command)
}

// runOnce runs a command to its end.
func runOnce(ctx context.Context, plan *chain.Plan, command process.Command) (any, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, diagnostics := &output{full: func() { stop(errTooLong) }}, &process.Tail{Max: maxDiagnostics}
	command.Stdout, command.Stderr = out, diagnostics
	result, err := process.Run(ctx, command)
	o := outcome{id: plan.Chain.Tool().ID, env: plan.Call, command: command, result: result, stdout: out.kept, stderr: strings.ToValidUTF8(diagnostics.String(), "\uFFFD")}
	switch {
	case errors.Is(context.Cause(ctx), errTooLong):
		return nil, o.tooLong()
	case err != nil:
		return nil, notStarted(o.id, command, err)
	}
	value, err := o.decode()
	if err != nil && plan.Offline {
		err = o.offline(plan.Chain.Tool().Ext, err)
	}
	if err == nil && len(bytes.TrimSpace(o.stdout)) == 0 {
		return nil, silent(plan)
	}
	return value, err
}

// silent says that a tool ended well and printed nothing: its result is empty, and where
// that is because nobody calls what it defines, it has failed.
func silent(plan *chain.Plan) error {
	if note := misfit(plan.Chain); note != "" {
		return tool.Faultf(tool.CodeToolFailed, "%s ended without a result: it %s", plan.Chain.Tool().ID, note)
	}
	plan.Warnings = append(plan.Warnings, plan.Chain.Tool().ID+" printed nothing, so its result is empty: what a program prints on standard output is its result")
	return nil
}

var errTooLong = errors.New("the tool prints too much")

// commandOf is the command of a plan.
func commandOf(plan *chain.Plan, warm bool) (process.Command, error) {
	id := plan.Chain.Tool().ID
	name, _ := plan.Fill(plan.Config["command"]).(string)
	if name == "" {
		return process.Command{}, tool.Faultf(tool.CodeInvalidItem, "%s names no config.command to run", id).With("path", plan.Chain.Tool().Path)
	}
	key, input := "args", "input_data"
	switch {
	case warm:
		key = "warm_args"
	case plan.Config["function_args"] != nil && onlyExports(plan.Chain.Tool()):
		key, input = "function_args", "function_input"
	}
	args, err := arguments(plan, key)
	if err != nil {
		return process.Command{}, err
	}
	for _, arg := range append([]string{name}, args...) {
		if err := fits(plan, arg); err != nil {
			return process.Command{}, err
		}
	}
	program, err := find(plan, name)
	if err != nil {
		return process.Command{}, err
	}
	c := process.Command{Path: program, Args: args, Env: plan.Environ, Dir: plan.Dir, Timeout: plan.Timeout, Stdin: plan.Params}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if text, given := plan.Config[input]; given {
		c.Stdin = []byte(inText(plan.Fill(text)))
	}
	for _, entry := range c.Env {
		if strings.ContainsRune(entry, 0) || plan.Call.Masked(entry) != entry {
			variable, _, _ := strings.Cut(entry, "=")
			return c, secretIn(id, "the variable "+variable)
		}
	}
	return c, nil
}

// arguments are the arguments that a key of the configuration lists.
func arguments(plan *chain.Plan, key string) ([]string, error) {
	var args []string
	switch list := plan.Config[key].(type) {
	case nil:
	case []any:
		for _, a := range list {
			filled := plan.Fill(a)
			if more, ok := filled.([]any); ok { // "{args}" for a parameter that is a list
				for _, one := range more {
					args = append(args, inText(one))
				}
				continue
			}
			args = append(args, inText(filled))
		}
	default:
		return nil, tool.Faultf(tool.CodeInvalidItem, "config.%s of %s is no list", key, plan.Chain.Tool().ID).With("path", plan.Chain.Tool().Path)
	}
	return args, nil
}

// fits refuses an argument that every user of the machine must not see, or that is too
// long.
func fits(plan *chain.Plan, arg string) error {
	id := plan.Chain.Tool().ID
	switch {
	case plan.Call.Masked(arg) != arg:
		return secretIn(id, "an argument of its command")
	case strings.ContainsRune(arg, 0):
		return tool.Faultf(tool.CodeBadArguments, "a parameter of %s has a NUL byte in it, which no argument of a command can have", id)
	case len(arg) > maxArgument:
		return tool.Faultf(tool.CodeBadArguments, "an argument of the command of %s would be %d bytes long; at most %d fit", id, len(arg), maxArgument).
			WithHint("Pass less, or have its runtime pass parameters on standard input (input_data).")
	}
	return nil
}

func secretIn(id, where string) error {
	return tool.Faultf(tool.CodeUnsupported, "%s would have a secret in %s, where others can read it", id, where).
		WithHint("Use a tool that takes its parameters on standard input.")
}

// find is the file of a program: a name is looked up in the PATH of the plan, in its
// absolute folders, and a relative path is one below the working folder.
func find(plan *chain.Plan, name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(plan.Dir, name)
		}
		return name, nil
	}
	var path string
	for _, entry := range plan.Environ {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return file, nil
		}
	}
	return "", missing(plan.Chain.Tool().ID, name)
}

func missing(id, name string) error {
	return tool.Faultf(tool.CodeUnsupported, "%s needs the program %s, which is not in the PATH of rye-mcp", id, name).
		WithHint("Tell the person to install %s, or use another tool.", name).WithTry("install %s", name)
}

// notStarted explains a command that could not be started.
func notStarted(id string, c process.Command, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		if _, statErr := os.Stat(c.Dir); statErr != nil {
			return tool.Faultf(tool.CodeInvalidItem, "the working folder of %s is not there: %s", id, c.Dir)
		}
		return missing(id, c.Path)
	case errors.Is(err, fs.ErrPermission):
		return tool.Faultf(tool.CodeUnsupported, "%s needs the program %s, which rye-mcp may not run", id, c.Path)
	case errors.Is(err, syscall.E2BIG):
		return tool.Faultf(tool.CodeBadArguments, "the parameters of %s are too long for the arguments of a command", id).
			WithHint("Pass less.")
	}
	return err
}
