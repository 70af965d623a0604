//go:build linux || darwin

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// DefaultMaxOutput is how many bytes of each output stream [Run] keeps.
	DefaultMaxOutput = 10 << 20

	// DefaultGrace is how long a command may take to end after SIGTERM.
	DefaultGrace = 2 * time.Second
)

// Command describes a command that is waited for.
type Command struct {
	Path    string   // program; a name without a slash is looked up in the caller's PATH
	Args    []string // arguments, without the program's name
	Env     []string // the whole environment, KEY=value; empty is an empty one
	Dir     string   // working folder; empty: the caller's
	Stdin   []byte   // standard input; what the command does not read is dropped
	Timeout time.Duration
	Grace   time.Duration // between SIGTERM and SIGKILL, and for output after the end; 0: [DefaultGrace]

	MaxOutput int       // bytes kept of each stream; 0: [DefaultMaxOutput]
	Stdout    io.Writer // takes the standard output, unbounded, instead of Result.Stdout
	Stderr    io.Writer // takes the standard error, unbounded, instead of Result.Stderr

	// Sys changes how the process is made; nil: nothing of it.
	Sys func(*syscall.SysProcAttr)
	// Files are the command's from the descriptor 3 on. They are closed here when it
	// has been started, or could not be.
	Files []*os.File
	// After is called when the command has ended, or could not be started; nil: nothing
	// is.
	After func()
}

// prepare is the command as the library starts it.
func (c Command) prepare(cmd *exec.Cmd) {
	cmd.Env = append([]string{}, c.Env...) // nil would mean the caller's
	cmd.Dir = c.Dir
	cmd.ExtraFiles = c.Files
	cmd.SysProcAttr = attachedAttr()
	if c.Sys != nil {
		c.Sys(cmd.SysProcAttr)
	}
}

// started closes what is the command's alone.
func (c Command) started() { closeAll(c.Files) }

func (c Command) ended() {
	if c.After != nil {
		c.After()
	}
}

// Result is what a command did.
type Result struct {
	Stdout    []byte
	Stderr    []byte
	ExitCode  int    // -1 when a signal ended it
	Signal    string // name of that signal, such as SIGTERM; else empty
	Truncated bool   // output beyond MaxOutput was dropped
	TimedOut  bool   // stopped because Timeout was over
	Cancelled bool   // stopped, or not started, because ctx ended
	Duration  time.Duration
}

var errTimeout = errors.New("the command's time is over")

// Run runs a command in a process group of its own and waits for it. When ctx
// ends or Timeout is over the group gets SIGTERM and, Grace later, SIGKILL.
//
// The command is over when its first process has ended. Output that others of
// its processes still hold open is read for Grace longer; then what is left of
// the group is killed. A process that made itself a new session escapes that,
// but does not hold up Run. On Linux the first process also dies when the
// caller is killed.
//
// However the command ended is a Result and not an error. An error says that it
// could not be started, or that Stdout or Stderr did not take the output.
func Run(ctx context.Context, c Command) (Result, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
		defer cancel()
	}
	// Linux ties the child's death signal to the operating-system thread that
	// started it, so the thread stays until the child has ended. Waiting occupies
	// one anyway.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	defer c.ended()
	start := time.Now()
	run := newRun(ctx, c)
	err := run.cmd.Start()
	c.started()
	if err != nil {
		if ctx.Err() == nil {
			return Result{}, fmt.Errorf("start %s: %w", c.Path, err)
		}
		run.stopped = true
		return run.result(ctx, start), nil
	}
	err = run.cmd.Wait()
	killGroup(run.cmd.Process.Pid)

	var exit *exec.ExitError
	switch {
	case err == nil, run.stopped, errors.As(err, &exit), errors.Is(err, exec.ErrWaitDelay):
		return run.result(ctx, start), nil
	default:
		return run.result(ctx, start), fmt.Errorf("run %s: %w", c.Path, err)
	}
}

// run is one execution of a command.
type run struct {
	cmd            *exec.Cmd
	stdout, stderr capped
	stopped        bool // ctx ended and the group was signalled; valid after Wait
}

func newRun(ctx context.Context, c Command) *run {
	limit := positive(c.MaxOutput, DefaultMaxOutput)
	r := &run{stdout: capped{limit: limit}, stderr: capped{limit: limit}}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	c.prepare(cmd)
	if len(c.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	cmd.WaitDelay = positive(c.Grace, DefaultGrace)
	cmd.Cancel = func() error {
		if err := unix.Kill(-cmd.Process.Pid, unix.SIGTERM); err != nil {
			return os.ErrProcessDone
		}
		r.stopped = true
		return nil
	}
	r.cmd = cmd
	return r
}

// positive returns v, or otherwise where v is not above zero.
func positive[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// result gathers what is known when the command is over.
func (r *run) result(ctx context.Context, start time.Time) Result {
	exit := exitOf(r.cmd.ProcessState)
	timedOut := errors.Is(context.Cause(ctx), errTimeout)
	return Result{
		Stdout:    r.stdout.kept,
		Stderr:    r.stderr.kept,
		ExitCode:  exit.Code,
		Signal:    exit.Signal,
		Truncated: r.stdout.dropped || r.stderr.dropped,
		TimedOut:  r.stopped && timedOut,
		Cancelled: r.stopped && !timedOut,
		Duration:  time.Since(start),
	}
}

// capped keeps the first limit bytes written to it and takes the rest without
// keeping it, so that the writing process is not held up.
type capped struct {
	limit   int
	kept    []byte
	dropped bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := min(len(p), c.limit-len(c.kept))
	c.kept = append(c.kept, p[:room]...)
	c.dropped = c.dropped || room < len(p)
	return len(p), nil
}
