package loop

import "sync"

// hands are goroutines that run tools, and are kept from call to call: a tool takes more
// stack than a goroutine begins with, and growing it costs more than a small tool does.
type hands struct {
	mu     sync.Mutex
	idle   []chan<- func()
	closed bool
}

// do has f run by a hand that has nothing to do, or by another one.
func (h *hands) do(f func()) {
	h.mu.Lock()
	var hand chan<- func()
	if last := len(h.idle) - 1; last >= 0 {
		hand, h.idle = h.idle[last], h.idle[:last]
	}
	h.mu.Unlock()
	if hand == nil {
		jobs := make(chan func())
		go h.work(jobs)
		hand = jobs
	}
	hand <- f
}

func (h *hands) work(jobs chan func()) {
	for f := range jobs {
		f()
		h.mu.Lock()
		if h.closed {
			h.mu.Unlock()
			return
		}
		h.idle = append(h.idle, jobs)
		h.mu.Unlock()
	}
}

// close lets the hands go; one that is at work goes when it is done.
func (h *hands) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, hand := range h.idle {
		close(hand)
	}
	h.idle = nil
}
