package sharedfile

import (
	"context"
	"sync"
)

// notifier tells listeners that some process has committed to a file. It watches
// only while somebody listens.
type notifier struct {
	f *File

	mu        sync.Mutex
	listeners map[chan struct{}]func() bool // value: detaches the channel from its context
	stop      context.CancelFunc            // ends the watch; nil while nobody listens
	closed    bool
	watches   sync.WaitGroup
}

func newNotifier(f *File) *notifier {
	return &notifier{f: f, listeners: make(map[chan struct{}]func() bool)}
}

// listen returns a channel that is closed from the start after close.
func (n *notifier) listen(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	if n.stop == nil {
		n.start() //nolint:contextcheck // the watch serves every listener, and outlives this one
	}
	n.listeners[ch] = context.AfterFunc(ctx, func() { n.leave(ch) })
	return ch
}

// start begins to watch. The first look is taken here, not in the goroutine: it
// must come before the first look of the listener, or a commit between the two
// would be seen by neither.
func (n *notifier) start() {
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	w := newWatch(ctx, n.f, n.f.poll)
	n.watches.Go(func() { w.run(ctx, n.tell) })
}

// tell wakes every listener; one that has not taken its last value yet needs no
// other.
func (n *notifier) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ch := range n.listeners {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// leave ends one channel, and the watch with the last.
func (n *notifier) leave(ch chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.listeners[ch]; !ok {
		return
	}
	delete(n.listeners, ch)
	close(ch)
	if len(n.listeners) == 0 {
		n.stop()
		n.stop = nil
	}
}

func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	for ch, detach := range n.listeners {
		detach()
		delete(n.listeners, ch)
		close(ch)
	}
	if n.stop != nil {
		n.stop()
		n.stop = nil
	}
	n.mu.Unlock()
	n.watches.Wait()
}
