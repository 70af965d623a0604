package sqlite

import (
	"context"
	"sync"
	"time"
)

// hub tells the listeners of one store that some process has committed to the
// registry. It watches only while somebody listens.
type hub struct {
	d    *database
	poll time.Duration

	mu        sync.Mutex
	listeners map[chan struct{}]func() bool // value: detaches the channel from its context
	stop      context.CancelFunc            // ends the watch; nil while nobody listens
	closed    bool
	watches   sync.WaitGroup
}

func newHub(d *database, poll time.Duration) *hub {
	return &hub{d: d, poll: poll, listeners: make(map[chan struct{}]func() bool)}
}

// Changes implements [store.Registry]. After Close the channel is closed from
// the start.
func (s *Store) Changes(ctx context.Context) <-chan struct{} { return s.changes.listen(ctx) }

func (h *hub) listen(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	if h.stop == nil {
		h.start() //nolint:contextcheck // the watch serves every listener, and outlives this one
	}
	h.listeners[ch] = context.AfterFunc(ctx, func() { h.leave(ch) })
	return ch
}

// start begins to watch. The first look is taken here, not in the goroutine: it
// must come before the first look of the listener, or a commit between the two
// would be seen by neither.
func (h *hub) start() {
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	w := newWatch(ctx, h.d, h.poll)
	h.watches.Go(func() { w.run(ctx, h.tell) })
}

// tell wakes every listener; one that has not taken its last value yet needs no
// other.
func (h *hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.listeners {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// leave ends one channel, and the watch with the last.
func (h *hub) leave(ch chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.listeners[ch]; !ok {
		return
	}
	delete(h.listeners, ch)
	close(ch)
	if len(h.listeners) == 0 {
		h.stop()
		h.stop = nil
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for ch, detach := range h.listeners {
		detach()
		delete(h.listeners, ch)
		close(ch)
	}
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.mu.Unlock()
	h.watches.Wait()
}
