// Package spawn starts the process of a thread: the same binary again, with
// the hidden command "thread run", in its own session, detached from whoever
// started it.
package spawn

import (
	"fmt"

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

// Launch starts the process of a registered thread. The lock is the thread's;
// the process inherits it and the caller releases its own handle afterwards.
func (l *Launcher) Launch(id thread.ID, dir folder.Folder, lock *process.Lock) (*process.Started, error) {
	started, err := process.Detach(process.Spec{
		Path:    l.Executable,
		Args:    Args(l.Project, id),
		Env:     append(l.Env[:len(l.Env):len(l.Env)], process.Mark(l.Project, string(id))...),
		Dir:     l.Project,
		LogPath: dir.Log(),
		Lock:    lock,
		Secrets: append([]string{}, l.Secrets...), // not nil: the process expects to be told, if only that there are none
	})
	if err != nil {
		return nil, fmt.Errorf("start the process of thread %s: %w", id, err)
	}
	return started, nil
}
