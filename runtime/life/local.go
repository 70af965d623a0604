package life

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Local are the lives of the threads of one project on this machine: a lock on a
// file of the thread's folder, which the process inherits from its starter.
type Local struct {
	Project string // absolute path, as thread processes are given it
	Home    func() folder.Home
	Place   process.Place // where the numbers of processes mean what they mean here
	// Args are the arguments of a thread's process, by which it is known where it
	// hides its environment.
	Args func(thread.ID) []string
}

var _ Life = (*Local)(nil)

// Claim implements [Life]. The folder of the thread must be there.
func (l *Local) Claim(k Key) (Hold, error) { return acquire(l.path(k)) }

// Held implements [Life].
func (l *Local) Held(k Key) (bool, error) { return process.Held(l.path(k)) }

// Adopt implements [Life].
func (l *Local) Adopt(k Key) (Hold, error) {
	lock, err := process.Inherit(process.LockFD, l.path(k))
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Lease implements [Life]. It is a file of the state folder.
func (l *Local) Lease(name string) (Hold, error) {
	return acquire(filepath.Join(l.Home().Dir, name+".lock"))
}

func (l *Local) path(k Key) string { return l.Home().Of(k.Thread).Lock() }

func acquire(path string) (Hold, error) {
	lock, err := process.Acquire(path)
	if errors.Is(err, process.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", ErrHeld, err)
	}
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// Lock is the lock behind what [Local] has claimed, to be handed to the process that
// is started.
func Lock(h Hold) (*process.Lock, error) {
	lock, ok := h.(*process.Lock)
	if !ok {
		return nil, fmt.Errorf("a hold of type %T cannot be handed to a process of this machine", h)
	}
	return lock, nil
}

// Reach implements [Life].
func (l *Local) Reach(p thread.Process) Reach {
	reach := l.Place.Reach(process.ID(p))
	if reach == Near && !l.Place.Signallable(process.ID(p)) {
		return Bygone
	}
	return reach
}

// Over implements [Life].
func (l *Local) Over(p thread.Process) bool { return l.Place.Over(process.ID(p)) }

// Find implements [Life].
func (l *Local) Find(rec thread.Record) thread.Process {
	if rec.PID != 0 || rec.Status.Terminal() {
		return rec.Process
	}
	pid, err := process.Leader(l.mark(rec.ThreadID), l.Args(rec.ThreadID))
	if err != nil || pid == 0 {
		return rec.Process
	}
	return thread.Process(l.Place.Identify(pid))
}

func (l *Local) mark(id thread.ID) []string { return process.Mark(l.Project, string(id)) }

// Watch implements [Life].
func (l *Local) Watch(ctx context.Context, p thread.Process) <-chan struct{} {
	return process.Watch(ctx, p.PID)
}

// Interrupt implements [Life].
func (l *Local) Interrupt(rec thread.Record) error { return process.Interrupt(rec.PID) }

// Suspended implements [Life].
func (l *Local) Suspended(rec thread.Record) bool {
	return l.Reach(rec.Process) == Near && process.Stopped(rec.PID)
}

// Stop implements [Life].
func (l *Local) Stop(ctx context.Context, rec thread.Record, patience Ladder, still func() bool) (How, error) {
	return process.StopGroup(ctx, rec.PID, func() bool {
		return l.lives(rec) && (still == nil || still())
	}, patience)
}

// lives reports whether the process of a row is there and the row's. A thread about
// which nothing can be decided counts as gone, so that no stranger is ever signalled.
func (l *Local) lives(rec thread.Record) bool {
	if l.Reach(rec.Process) != Near {
		return false
	}
	if rec.Status.Terminal() && rec.Started != 0 {
		return !process.Gone(rec.PID)
	}
	held, err := l.Held(Of(rec))
	return err == nil && held
}

// Leftovers implements [Life].
func (l *Local) Leftovers(ctx context.Context, id thread.ID) error {
	return process.KillLeftovers(ctx, l.mark(id))
}
