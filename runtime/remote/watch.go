package remote

import (
	"context"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// A follower of a thread tells the server so, for the time of followed, again and again.
const (
	followed    = 30 * time.Second
	followAgain = 10 * time.Second
)

// Watch implements [records.Transcript]. A transcript that is written here tells by its
// file; one that another machine writes is shipped each second meanwhile, and tells through
// the server.
func (w words) Watch() (written <-chan struct{}, stop func()) {
	if w.writing(w.id) != nil {
		return w.local.Transcript().Watch()
	}
	if f, n, err := w.standing(); err == nil && n.original(f) {
		return w.local.Transcript().Watch()
	}
	told, deafen := w.ears.listen(w.Server, w.id)
	ctx, end := context.WithCancel(context.Background())
	var wishing sync.WaitGroup
	wishing.Go(func() {
		tick := time.NewTicker(followAgain)
		defer tick.Stop()
		for {
			_ = w.Server.Follow(ctx, w.id, followed) // else it comes with the checkpoints
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return told, sync.OnceFunc(func() {
		end()
		wishing.Wait()
		deafen()
	})
}

// ears hear for all followers of threads on other machines, by one connection, which is
// there while somebody does.
type ears struct {
	mu       sync.Mutex
	listener *recordserver.Listener
	told     map[thread.ID]map[chan struct{}]bool
}

func (e *ears) listen(s *recordserver.Server, id thread.ID) (told <-chan struct{}, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := make(chan struct{}, 1)
	if e.told == nil {
		e.told = map[thread.ID]map[chan struct{}]bool{}
	}
	if e.told[id] == nil {
		e.told[id] = map[chan struct{}]bool{}
	}
	e.told[id][c] = true
	if e.listener == nil {
		e.listener = s.Listen(e.tell)
	}
	return c, sync.OnceFunc(func() { e.forget(id, c) })
}

func (e *ears) tell(id thread.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.told[id] {
		select {
		case c <- struct{}{}:
		default: // it has been told, and has not looked yet
		}
	}
}

func (e *ears) forget(id thread.ID, c chan struct{}) {
	e.mu.Lock()
	delete(e.told[id], c)
	if len(e.told[id]) == 0 {
		delete(e.told, id)
	}
	var idle *recordserver.Listener
	if len(e.told) == 0 {
		idle, e.listener = e.listener, nil
	}
	e.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
}

func (e *ears) close() {
	e.mu.Lock()
	idle := e.listener
	e.listener = nil
	e.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
}
