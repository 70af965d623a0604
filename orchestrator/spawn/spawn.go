// Package spawn starts the process of a thread: the same binary again, with
// the hidden command "thread run", in its own session, detached from whoever
// started it.
package spawn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn/handed"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Launcher starts thread processes of one project on this machine. The starter
// claims a thread's life before the thread's row becomes visible and hands it over
// here, so that at no moment the life of a live thread is free: a thread whose life
// nobody holds is dead, without any grace period.
type Launcher struct {
	Executable string // path of this binary
	Project    string // absolute path
	Home       func() folder.Home
	Place      process.Place
	// Environ divides the environment for the process, as [process.ThreadEnv] does: env is
	// what it may have, secrets are the variables named by keys.
	Environ func(keys []string) (env, secrets []string)
	// Store says where threads are kept that other machines have, too; nil: on this machine.
	Store func() *Store
	// Worker is the name of the worker that this process is; empty: it is none.
	Worker string
	// Outer is the rest of the environment. The process has it apart from its own, for
	// tools that name variables of it. Nil: there is none.
	Outer func() []string
}

// Request is a thread whose process is to be started.
type Request struct {
	Thread thread.ID
	Run    thread.Run // by which its process writes
	Hold   life.Hold  // the life of that run, which the process gets
	Handed Handed
}

// Handed is what the process of a thread is handed beside its environment, through
// a pipe that nobody else can read.
type Handed struct {
	Inputs map[string]string // values of its secret inputs
	Keys   []string          // names of the variables that hold keys of providers
	// ProviderKeys are keys that no variable holds, by provider.
	ProviderKeys map[string]string
	Settings     []byte // that were decided for it; nil: it reads them itself
	// Items is the folder in which the items are laid out that it works by; empty: those
	// of the project and its user are the same.
	Items string
}

// Store says where the rows of threads are.
type Store = handed.Store

// Args are the arguments of the process of a thread.
func Args(project string, id thread.ID) []string {
	return handed.Args(project, string(id))
}

// Of is the thread of a project whose process has these arguments, the program's
// name first; empty when it is another program.
func Of(project string, args []string) thread.ID {
	for _, arg := range args { // one of them is the id
		if id := thread.ID(arg); slices.Equal(args[1:], Args(project, id)) {
			return id
		}
	}
	return ""
}

// IsThread reports whether a process with these arguments, the program's name
// first, runs a thread of any project.
func IsThread(args []string) bool { return handed.IsThread(args) }

// goRuntime lets the Go runtime of a thread's process take less memory, of which it
// keeps some for every processor: there are many such processes, and most of the
// time all of them wait for a model. The first collection comes at 12 MB, which is
// Go's least heap of 4 MB times GOGC/100, until the thread settles (cmd/rye-mcp/gc).
var goRuntime = []string{"GOMAXPROCS=1", "GOGC=300"}

// Launch starts the process of a registered thread. The process inherits the hold, and
// the caller releases its own afterwards.
func (l *Launcher) Launch(r Request) (life.Running, error) {
	id, handed := r.Thread, r.Handed
	lock, err := life.Lock(r.Hold)
	if err != nil {
		return nil, fmt.Errorf("start the process of thread %s: %w", id, err)
	}
	env, secrets := l.Environ(handed.Keys)
	env = l.underWorker(env, r.Run)
	entries := handed.entries(r.Run, secrets, without(l.outer(env, secrets), handed.Inputs))
	if l.Store != nil {
		if entries, err = withStore(entries, l.Store()); err != nil {
			return nil, fmt.Errorf("start the process of thread %s: %w", id, err)
		}
	}
	started, err := process.Detach(process.Spec{
		Path:    l.Executable,
		Args:    Args(l.Project, id),
		Env:     slices.Concat(without(env, handed.Inputs), goRuntime, process.Mark(l.Project, string(id))),
		Dir:     l.Project,
		LogPath: l.Home().Of(id).Log(),
		Lock:    lock,
		Secrets: entries,
	})
	if err != nil {
		return nil, fmt.Errorf("start the process of thread %s: %w", id, err)
	}
	runs := running{started, thread.Process(l.Place.Identify(started.PID()))}
	life.HandOver(r.Hold, runs)
	return runs, nil
}

// WorkerVariable names the worker whose thread a process runs, or is started by, as
// INCARNATION/NAME. All that runs by the lease of a worker is found by it.
const WorkerVariable = "RYE_WORKER"

// UnderWorker takes WorkerVariable apart; by is empty where it names no worker.
func UnderWorker(value string) (by thread.Incarnation, name string) {
	text, name, _ := strings.Cut(value, "/")
	if by = thread.Incarnation(text); by.NewRun().Incarnation() != by || name == "" {
		return "", ""
	}
	return by, name
}

// WorkerMark is the entry of the environment of what runs by the lease of a worker.
func WorkerMark(by thread.Incarnation, name string) string {
	return WorkerVariable + "=" + string(by) + "/" + name
}

// underWorker is the environment of a process that runs by the lease of this worker.
func (l *Launcher) underWorker(env []string, run thread.Run) []string {
	if l.Worker == "" {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, WorkerVariable+"=") })
	return append(env, WorkerMark(run.Incarnation(), l.Worker))
}

// outer are the variables that the process is not given otherwise.
func (l *Launcher) outer(given ...[]string) []string {
	if l.Outer == nil {
		return nil
	}
	known := map[string]bool{}
	for _, entry := range slices.Concat(given...) {
		name, _, _ := strings.Cut(entry, "=")
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(l.Outer()), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return known[name]
	})
}

// running is a started process with its name.
type running struct {
	*process.Started
	process thread.Process
}

// Process implements [life.Running].
func (r running) Process() thread.Process { return r.process }

// without is the environment without variables that hold a secret input: whoever
// gives one may have it in a variable that threads and their tools would inherit.
func without(env []string, inputs map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		_, value, _ := strings.Cut(entry, "=")
		for _, secret := range inputs {
			if value == secret {
				return true
			}
		}
		return false
	})
}

// inputPrefix tells a secret input of the thread, which is no variable, from the
// variables of the providers.
const inputPrefix = "input:"

// runPrefix tells the run of the thread from variables.
const runPrefix = "run:"

// settingsPrefix tells the settings of the thread from variables.
const settingsPrefix = "settings:"

// itemsPrefix tells where the items of the thread are laid out from variables.
const itemsPrefix = "items:"

// keyPrefix tells keys of providers that no variable holds from variables.
const keyPrefix = "key:"

// outerPrefix tells variables that only tools get, and only those that name them.
const outerPrefix = "outer:"

// entries is what goes through the pipe.
func (h Handed) entries(run thread.Run, secrets, outer []string) []string {
	entries := append([]string{runPrefix + string(run)}, secrets...)
	for _, entry := range outer {
		entries = append(entries, outerPrefix+entry)
	}
	for _, name := range slices.Sorted(maps.Keys(h.Inputs)) {
		entries = append(entries, inputPrefix+name+"="+h.Inputs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(h.ProviderKeys)) {
		entries = append(entries, keyPrefix+name+"="+h.ProviderKeys[name])
	}
	if h.Settings != nil {
		entries = append(entries, settingsPrefix+string(h.Settings))
	}
	if h.Items != "" {
		entries = append(entries, itemsPrefix+h.Items)
	}
	return entries
}

func withStore(entries []string, s *Store) ([]string, error) {
	if s == nil {
		return entries, nil
	}
	entry, err := s.Entry()
	return append(entries, entry), err
}

// Inheritance is what the process of a thread was handed.
type Inheritance struct {
	Run       thread.Run        // empty: by a starter of an older version
	Variables []string          // NAME=value
	Inputs    map[string]string // values of the thread's secret inputs, by name
	Settings  []byte            // nil: by a starter that hands over none
	Items     string            // folder of the items; empty: those of the project and its user
	Outer     []string          // NAME=value: variables for tools that name them
	// ProviderKeys are keys that no variable holds, by provider.
	ProviderKeys map[string]string
	Store        *Store // nil: threads are kept on this machine
}

// Inherited divides what the process of a thread was handed.
func Inherited(entries []string) Inheritance {
	in := Inheritance{Inputs: map[string]string{}, ProviderKeys: map[string]string{}}
	for _, entry := range entries {
		if run, ok := strings.CutPrefix(entry, runPrefix); ok {
			in.Run = thread.Run(run)
			continue
		}
		if settings, ok := strings.CutPrefix(entry, settingsPrefix); ok {
			in.Settings = []byte(settings)
			continue
		}
		if items, ok := strings.CutPrefix(entry, itemsPrefix); ok {
			in.Items = items
			continue
		}
		if outer, ok := strings.CutPrefix(entry, outerPrefix); ok {
			in.Outer = append(in.Outer, outer)
			continue
		}
		if at, ok := handed.StoreOf(entry); ok {
			in.Store = at
			continue
		}
		if key, ok := strings.CutPrefix(entry, keyPrefix); ok {
			name, value, _ := strings.Cut(key, "=")
			in.ProviderKeys[name] = value
			continue
		}
		input, isInput := strings.CutPrefix(entry, inputPrefix)
		if !isInput {
			in.Variables = append(in.Variables, entry)
			continue
		}
		name, value, _ := strings.Cut(input, "=")
		in.Inputs[name] = value
	}
	return in
}
