// Package cli is the command line of rye-mcp: one file a command, and wire.go,
// the one place that sees every part of the program and puts them together.
//
// Standard output carries the answer of a command and nothing else; everything
// said beside it goes to standard error.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/worker"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// System is what a command sees of the machine.
type System struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	// Outer is a part of the environment that only tools get, and only those that name
	// variables of it: that of the starter of a thread's process.
	Outer   []string
	Getenv  func(string) string
	Getwd   func() (string, error)
	HomeDir func() (string, error)
	Now     func() time.Time
	// Executable is the path of this binary, which threads are started from.
	Executable func() (string, error)
	Hostname   func() (string, error)
	// worker is the worker that this process is; nil: it is none.
	worker *worker.Worker
	// Crashpoints is told of each crash point of what must survive a crash. The program
	// has none; its tests have one that kills the process there.
	Crashpoints thread.Crashpoints
	// Around is put around the store of threads that other machines have, too. The program
	// has none; its tests have one that writes down which run has written what.
	Around func(store.Store) store.Store
	// Migrations are in place of those of the program, for tables of threads on PostgreSQL. Its
	// tests have those of a newer one.
	Migrations fs.FS
	// Lease is how long that of a worker lasts without a renewal; 0: as the fleet says. The
	// program has none; its tests have a longer one where a busy machine must not lose it.
	Lease time.Duration
	// OneSignal is how long further signals mean what the first one meant; 0: a second. The
	// program has none; its tests have one that does not depend on how busy the machine is.
	OneSignal time.Duration

	second *secondSignal
	store  *storeWish // nil: nobody says where threads are kept but the settings
}

// OS is the machine the program runs on.
func OS() System {
	environ, getenv := withoutReferences(os.Environ(), os.Getenv)
	return System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: environ, Getenv: getenv,
		Getwd: os.Getwd, HomeDir: os.UserHomeDir, Now: time.Now, Executable: os.Executable, Hostname: os.Hostname,
	}
}

// withSecrets adds variables that are not in the environment of this process.
func (s System) withSecrets(entries []string) System {
	secrets, getenv := make(map[string]string), s.Getenv
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		secrets[name] = value
	}
	s.Environ = slices.Concat(s.Environ, entries)
	s.Getenv = func(name string) string {
		if value, ok := secrets[name]; ok {
			return value
		}
		return getenv(name)
	}
	return s
}

// Main runs a command line and returns the exit code.
func Main(sys System, args []string) int {
	// This process has the keys of model providers, and starts what models ask for
	// as the same user. Where a sandbox forbids to hide them, it is the sandbox
	// that keeps processes apart.
	_ = process.HideMemory()
	sys.second = &secondSignal{}
	ctx, stop := interruptible(cmp.Or(sys.OneSignal, oneSignal), sys.second)
	defer stop()
	root := rootFor(sys, args)
	root.SetArgs(args)
	helped := &heeding{Writer: sys.Stdout}
	root.SetOut(helped)
	cmd, err := root.ExecuteContextC(ctx)
	if err = cmp.Or(err, helped.lost()); err == nil {
		return exitOK
	}
	return report(sys, err, tryAfter(cmd, err))
}

// exitError ends the program with a code; everything has been said by then.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// usageError is a command line that makes no sense.
type usageError struct {
	message string
	try     string
}

func (e *usageError) Error() string { return e.message }

// report tells a person what went wrong and what to try, and chooses the exit
// code. Help is what to try where the error does not say it.
func report(sys System, err error, help string) int {
	w := sys.Stderr
	var (
		exit  exitError
		usage *usageError
	)
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		say(w, usage.message, cmp.Or(usage.try, help))
		return exitUsage
	case errors.Is(err, thread.ErrCancelled), errors.Is(err, context.Canceled):
		say(w, "interrupted", "")
		return exitCancelled
	}
	if err := lostOutput(sys, err); err != nil {
		say(w, err.Error(), tryOutput)
		return exitFailure
	}
	f := tool.AsFault(threads.WithAway(err))
	if f.Try != "" && belowThread(sys) { // a model reads this
		f.Try = ""
	}
	say(w, f.Message, cmp.Or(advice(f), help))
	return exitFailure
}

// say tells what is wrong and what to do about it. Messages can hold what a model
// or a file said.
func say(w io.Writer, message, try string) {
	_, _ = fmt.Fprintf(w, "Error: %s\n", plain.Lines(message))
	if try != "" {
		_, _ = fmt.Fprintf(w, "Try:   %s\n", plain.Lines(try))
	}
}

// advice is what a person can do about a fault: what it says for people, the ids a
// mistyped one may have meant, the inputs there are, else what models are told.
func advice(f *tool.Fault) string {
	if f.Try != "" {
		return f.Try
	}
	if ids, ok := f.Details["nearest_ids"].([]string); ok && len(ids) > 0 {
		return "did you mean " + strings.Join(ids, ", ") + "?"
	}
	if declared, ok := f.Details["declared_inputs"].([]inputs.Declared); ok && len(declared) > 0 {
		names := make([]string, len(declared))
		for i, d := range declared {
			names[i] = "--input " + d.Name + "=" + strings.ToUpper(d.Type)
			if d.Secret {
				names[i] = "--" + inputEnvFlag + " " + d.Name + "=VARIABLE"
			}
		}
		return strings.Join(names, " ")
	}
	if f.Hint == tool.HintArguments { // the help of the command says more
		return ""
	}
	return f.Hint
}

// newLog returns the log of a process: JSON lines to w, with the level named by
// RYE_LOG_LEVEL (default info).
func newLog(sys System, w io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(sys.Getenv("RYE_LOG_LEVEL"))
	if err != nil || level == zerolog.NoLevel {
		level = zerolog.InfoLevel
	}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}
