package server

import (
	"io"
	"sync"
)

// maxUnwritten is how many bytes may wait for a client that does not read
// before its messages are no longer read either, and progress is held back.
const maxUnwritten = 16 << 20

// outbox is the one way to the client: messages leave in the order they were
// put in, each whole. Putting never blocks.
type outbox struct {
	mu      sync.Mutex
	pending []byte // whole lines
	closed  bool   // nothing is accepted any more
	err     error  // of the write that failed; set before done closes

	wake    chan struct{} // has a token when run has something to look at
	drained chan struct{} // has a token when pending was taken
	done    chan struct{} // closed when run ended
}

// newOutbox starts a goroutine that writes to w until the outbox is closed or
// a write fails.
func newOutbox(w io.Writer) *outbox {
	o := &outbox{
		wake:    make(chan struct{}, 1),
		drained: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	go o.run(w)
	return o
}

// put queues one encoded message, which ends in a newline. After close or a
// failed write it is dropped: nobody is left to read it.
func (o *outbox) put(msg []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.pending = append(o.pending, msg...)
	poke(o.wake)
}

// full reports whether the client is far behind with reading.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending) > maxUnwritten
}

// close lets what is queued be written and accepts no more. It does not wait;
// done says when everything was written.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	poke(o.wake)
}

func (o *outbox) run(w io.Writer) {
	defer close(o.done)
	var spare []byte
	for range o.wake {
		for {
			batch, closed := o.take(spare)
			spare = batch[:0] // pending has the other buffer now
			if cap(spare) > maxLine {
				spare = nil
			}
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			if _, err := w.Write(batch); err != nil {
				o.fail(err)
				return
			}
		}
	}
}

// take swaps what is pending for an empty buffer.
func (o *outbox) take(empty []byte) (batch []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch, o.pending = o.pending, empty
	poke(o.drained)
	return batch, o.closed
}

func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.closed, o.pending = err, true, nil
}

// poke leaves a token in a channel of capacity one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
