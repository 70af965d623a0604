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
// file of the thread's folder that is named by the run, which the process inherits from
// its starter.
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
func (l *Local) Claim(k Key) (Hold, error) {
	dir := l.Home().Of(k.Thread)
	lock, err := acquire(dir.Lock(k.Run))
	if err != nil {
		return nil, err
	}
	return &localLife{lock, dir, k.Run}, nil
}

// Held implements [Life].
func (l *Local) Held(k Key) (bool, error) {
	dir := l.Home().Of(k.Thread)
	if k.Run.NamesLife() {
		return process.Held(dir.Lock(k.Run))
	}
	locks, err := dir.Locks()
	if err != nil {
		return false, err
	}
	for _, path := range locks {
		if held, err := process.Held(path); held || err != nil {
			return held, err
		}
	}
	return false, nil
}

// Adopt implements [Life].
func (l *Local) Adopt(k Key) (Hold, error) {
	dir := l.Home().Of(k.Thread)
	lock, err := process.Inherit(process.LockFD, dir.Lock(k.Run))
	if err != nil {
		return nil, err
	}
	return &localLife{lock, dir, k.Run}, nil
}

// Lease implements [Life]. It is a file of the state folder.
func (l *Local) Lease(name string) (Hold, error) {
	lock, err := acquire(filepath.Join(l.Home().Dir, name+".lock"))
	if err != nil {
		return nil, err
	}
	return lease{lock}, nil
}

func acquire(path string) (*process.Lock, error) {
	lock, err := process.Acquire(path)
	if errors.Is(err, process.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return lock, err
}

// lease is a right of this project, whose file stays.
type lease struct{ *process.Lock }

// End implements [Hold].
func (l lease) End() error { return l.Release() }

// localLife is the life of one run. Its file goes with it: no other run is claimed by
// that name. The one that is known by the thread alone stays.
type localLife struct {
	lock *process.Lock
	dir  folder.Folder
	run  thread.Run
}

// Release implements [Hold].
func (h *localLife) Release() error {
	if !h.run.NamesLife() {
		return h.lock.Release()
	}
	return h.lock.Remove()
}

// End implements [Hold]. A file that cannot be removed is in nobody's way.
func (h *localLife) End() error {
	locks, _ := h.dir.Locks()
	for _, path := range locks {
		if path != h.lock.Path() {
			_ = process.RemoveLock(path)
		}
	}
	return h.Release()
}

// Lock is the lock behind what [Local] has claimed, to be handed to the process that
// is started.
func Lock(h Hold) (*process.Lock, error) {
	if leased, is := h.(*leasedLife); is {
		h = leased.Hold
	}
	life, ok := h.(*localLife)
	if !ok {
		return nil, fmt.Errorf("a hold of type %T cannot be handed to a process of this machine", h)
	}
	return life.lock, nil
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

// Ask implements [Life].
func (l *Local) Ask(rec thread.Record, how How) error {
	if how == Terminated {
		return process.Terminate(rec.PID)
	}
	return process.Interrupt(rec.PID)
}

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
