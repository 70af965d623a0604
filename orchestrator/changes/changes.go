// Package changes tells those who want to know what has changed of the threads of a
// project: of a thread, its result, its money or its chain, or of all of them. It is
// woken by commits and by the ends of processes, and looks once for all who listen,
// at most once a second; while nobody listens it does nothing. Changes are told
// as often as they were seen, so that several within a second are one, and the last
// of a thread is always told.
package changes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Aspect is what of a thread, or of all of them, somebody wants to know.
type Aspect int

// The aspects. Those of all threads are asked for without an id.
const (
	Transcript Aspect = iota // the thread works, or has ended
	Result                   // its state, or that of a thread that continues it
	Cost                     // what it has spent, those that it continues, or those below
	Chain                    // any thread of its chain
	Board                    // how any thread of the project stands
	Set                      // threads have been started or have ended
	Any                      // somebody has committed, or a process has ended: anything may have
)

// Topic is something that changes.
type Topic struct {
	ID     thread.ID
	Aspect Aspect
}

const (
	// every is the time between two looks.
	every = time.Second
	// maxListeners is how many may listen to the threads of one project.
	maxListeners = 1 << 16
)

// Feed tells what changes of the threads of a project. The zero value with Threads is
// ready to use.
type Feed struct {
	Threads *threads.Threads
	// Every is the least time between two looks; 0 is a second.
	Every time.Duration

	mu        sync.Mutex
	closed    bool
	stop      context.CancelFunc // ends the looking; nil while nobody listens
	looking   sync.WaitGroup
	listeners map[Topic]map[*listener]struct{}
	count     int
}

// listener is told of one topic.
type listener struct {
	changed func(over bool)
	left    atomic.Bool // it wants to be told no more
}

// Listen calls changed, from any goroutine, after the topic has changed, until stop is
// called; once it may still be called while that happens. A thread that there is none
// of may come to be. Changes before Listen was called need not be told. With
// over nothing more will be: the threads are not those of the project any more.
func (f *Feed) Listen(ctx context.Context, topic Topic, changed func(over bool)) (stop func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, tool.Faultf(tool.CodeConflict, "the project is being closed")
	case f.count >= maxListeners:
		return nil, tool.Faultf(tool.CodeConflict, "the changes of %d topics are told already, the most of one project", maxListeners)
	}
	if f.stop == nil {
		if err := f.start(ctx); err != nil {
			return nil, threads.Fault(err)
		}
	}
	l := &listener{changed: changed}
	if f.listeners[topic] == nil {
		f.listeners[topic] = map[*listener]struct{}{}
	}
	f.listeners[topic][l] = struct{}{}
	f.count++
	return func() { f.leave(topic, l) }, nil
}

// start begins to look. The first look is what later ones are compared with, and comes
// after the first of the wake-ups.
func (f *Feed) start(ctx context.Context) error { //nolint:contextcheck // the looking serves every listener, and outlives this one
	// It outlives the call, and must not keep what that brought along.
	looking, stop := context.WithCancel(context.Background())
	commits := f.Threads.Store.Changes(looking) //nolint:contextcheck // see above
	exits := f.Threads.NewExitWatcher(looking)  //nolint:contextcheck // see above
	now, err := f.look(ctx, glance{})
	if err != nil {
		stop()
		return err
	}
	exits.Watch(now.active)
	f.stop, f.listeners = stop, map[Topic]map[*listener]struct{}{}
	f.looking.Go(func() { f.run(looking, commits, exits, now) })
	return nil
}

func (f *Feed) leave(topic Topic, l *listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.left.Store(true)
	if _, listens := f.listeners[topic][l]; !listens {
		return
	}
	delete(f.listeners[topic], l)
	if len(f.listeners[topic]) == 0 {
		delete(f.listeners, topic)
	}
	f.count--
	if f.count == 0 {
		f.stop()
		f.stop = nil
	}
}

// endOf ends the listening to threads that were deleted, after that was told: nothing of
// them changes any more, and their ids do not come back.
func (f *Feed) endOf(gone []thread.ID) {
	if len(gone) == 0 {
		return
	}
	deleted := make(map[thread.ID]bool, len(gone))
	for _, id := range gone {
		deleted[id] = true
	}
	f.mu.Lock()
	var left []func()
	for topic, listeners := range f.listeners {
		if topic.ID == "" || !deleted[topic.ID] {
			continue
		}
		for l := range listeners {
			left = append(left, func() { f.leave(topic, l) })
		}
	}
	f.mu.Unlock()
	for _, leave := range left {
		leave()
	}
}

// Close ends all listening, and tells everybody so.
func (f *Feed) Close() {
	f.mu.Lock()
	f.closed = true
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	last := f.told(func(Topic) bool { return true })
	f.listeners, f.count = nil, 0
	f.mu.Unlock()
	f.looking.Wait()
	tell(last, true)
}

// told are the listeners of some topics. The caller holds f.mu.
func (f *Feed) told(has func(Topic) bool) (all []*listener) {
	for topic, listeners := range f.listeners {
		if !has(topic) {
			continue
		}
		for l := range listeners {
			all = append(all, l)
		}
	}
	return all
}

func tell(all []*listener, over bool) {
	for _, l := range all {
		if !l.left.Load() {
			l.changed(over)
		}
	}
}
