// Package spawn starts the process of a thread: the same binary again, with
// the hidden command "thread run", in its own session, detached from whoever
// started it.
package spawn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// LockFD is the descriptor under which a thread's process finds its life lock.
// The spawner takes the lock before the thread's row becomes visible and hands
// it over here, so that at no moment the lock of a live thread is free: a
// thread whose lock is free is dead, without any grace period.
const LockFD = process.LockFD

// Launcher starts thread processes of one project.
type Launcher struct {
	Executable string   // path of this binary
	Project    string   // absolute path
	Env        []string // environment of the process, already reduced to what it may have
	Secrets    []string // NAME=value; never in the environment, see [process.InheritSecrets]
}

// Args are the arguments of the process of a thread.
func Args(project string, id thread.ID) []string {
	return []string{"thread", "run", "--pre-registered", "--thread-id", string(id), "--project", project}
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
func IsThread(args []string) bool {
	like := Args("", "")
	return len(args) == len(like)+1 && slices.Equal(args[1:5], like[:4]) && args[6] == like[5]
}

// small lets the Go runtime of a thread's process take less memory, of which it
// keeps some for every processor: there are many such processes, and most of the
// time all of them wait for a model.
var small = []string{"GOMAXPROCS=1", "GOGC=50"}

// Launch starts the process of a registered thread, which is handed the values of
// its secret inputs. The lock is the thread's; the process inherits it and the
// caller releases its own handle afterwards.
func (l *Launcher) Launch(
	id thread.ID, dir folder.Folder, lock *process.Lock, inputs map[string]string,
) (*process.Started, error) {
	started, err := process.Detach(process.Spec{
		Path:    l.Executable,
		Args:    Args(l.Project, id),
		Env:     slices.Concat(l.environ(inputs), small, process.Mark(l.Project, string(id))),
		Dir:     l.Project,
		LogPath: dir.Log(),
		Lock:    lock,
		Secrets: l.secrets(inputs),
	})
	if err != nil {
		return nil, fmt.Errorf("start the process of thread %s: %w", id, err)
	}
	return started, nil
}

// environ is the environment without variables that hold a secret input: whoever
// gives one may have it in a variable that threads and their tools would inherit.
func (l *Launcher) environ(inputs map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(l.Env), func(entry string) bool {
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

// secrets is what the process is handed over. It is not nil: the process expects
// to be told, if only that there are none.
func (l *Launcher) secrets(inputs map[string]string) []string {
	entries := append([]string{}, l.Secrets...)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		entries = append(entries, inputPrefix+name+"="+inputs[name])
	}
	return entries
}

// Inherited divides what the process of a thread was handed over into variables
// and the values of the thread's secret inputs, by name.
func Inherited(entries []string) (variables []string, inputs map[string]string) {
	inputs = map[string]string{}
	for _, entry := range entries {
		input, isInput := strings.CutPrefix(entry, inputPrefix)
		if !isInput {
			variables = append(variables, entry)
			continue
		}
		name, value, _ := strings.Cut(input, "=")
		inputs[name] = value
	}
	return variables, inputs
}
