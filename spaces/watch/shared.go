package watch

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Shared is one watch for all who want to be told. It stands while there is one of
// them. It is safe for concurrent use.
type Shared struct {
	roots resolve.Roots

	mu        sync.Mutex
	listeners map[int]func()
	next      int
	end       func() // of the watch that stands
	running   sync.WaitGroup

	telling sync.Mutex // held while listeners are called: a watch that was ended may still call when the next one does
}

// NewShared is a watch over the spaces of roots that does not stand yet.
func NewShared(roots resolve.Roots) *Shared {
	return &Shared{roots: roots, listeners: map[int]func(){}}
}

// Listen calls changed when items may have changed, until stop is called; one call
// after the other. One that is on its way then may still come.
func (s *Shared) Listen(changed func()) (stop func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		w, err := New(s.roots, Calm)
		if err != nil {
			return nil, err
		}
		ctx, end := context.WithCancel(context.Background())
		s.end = end
		s.running.Go(func() { w.Run(ctx, s.tell) })
	}
	id := s.next
	s.next++
	s.listeners[id] = changed
	return func() { s.leave(id) }, nil
}

// leave takes a listener away, and with the last one the watch.
func (s *Shared) leave(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, id)
	if len(s.listeners) == 0 && s.end != nil {
		s.end()
		s.end = nil
	}
}

// tell calls the listeners there are.
func (s *Shared) tell() {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, id := range ids {
		s.mu.Lock()
		changed := s.listeners[id]
		s.mu.Unlock()
		if changed != nil {
			changed()
		}
	}
}

// Close ends the watch and waits for calls that have begun. Nothing is told after it.
func (s *Shared) Close() {
	s.mu.Lock()
	clear(s.listeners)
	if s.end != nil {
		s.end()
		s.end = nil
	}
	s.mu.Unlock()
	s.running.Wait()
}
