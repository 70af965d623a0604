package threads

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// children are the processes this one has started and that are not over. They
// are watched so that one that dies is settled although nobody waits for it,
// and with how it ended, which only its parent can ask the system. Others
// who look at the thread come to the same without them.
type children struct {
	died    func(ctx context.Context, id thread.ID) // sees a thread settled whose process ended badly
	ctx     context.Context                         //nolint:containedctx // ends with close
	cancel  context.CancelFunc
	watches sync.WaitGroup

	mu        sync.Mutex
	processes map[thread.ID]life.Running
	reasons   map[thread.ID]string // why their processes are ended here
}

func newChildren(died func(context.Context, thread.ID)) *children {
	cs := &children{died: died, processes: map[thread.ID]life.Running{}, reasons: map[thread.ID]string{}}
	cs.ctx, cs.cancel = context.WithCancel(context.Background())
	return cs
}

// watch looks after a process until it has ended or the children are closed.
func (cs *children) watch(id thread.ID, started life.Running) {
	cs.mu.Lock()
	cs.processes[id] = started
	cs.mu.Unlock()
	cs.watches.Go(func() {
		select {
		case <-started.Done():
		case <-cs.ctx.Done():
			return
		}
		if started.Exit() != (life.Exit{}) {
			cs.died(cs.ctx, id)
		}
		cs.mu.Lock()
		defer cs.mu.Unlock()
		delete(cs.processes, id)
		delete(cs.reasons, id)
	})
}

// endedFor notes why a process that was started here is about to be ended.
func (cs *children) endedFor(id thread.ID, why string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, known := cs.processes[id]; known {
		cs.reasons[id] = why
	}
}

// exitOf tells how a process ended that was started here. It waits for the end
// until ctx ends.
func (cs *children) exitOf(ctx context.Context, id thread.ID) (life.Exit, bool) {
	cs.mu.Lock()
	started, known := cs.processes[id]
	cs.mu.Unlock()
	if !known {
		return life.Exit{}, false
	}
	select {
	case <-started.Done():
		exit := started.Exit()
		cs.mu.Lock()
		defer cs.mu.Unlock()
		exit.Why = cs.reasons[id]
		return exit, true
	case <-ctx.Done():
		return life.Exit{}, false
	}
}

func (cs *children) ids() []thread.ID {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Keys(cs.processes))
}

func (cs *children) close() {
	cs.cancel()
	cs.watches.Wait()
}
