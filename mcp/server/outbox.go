package server

import (
	"io"
	"sync"
)

// maxUnwritten is how many bytes may wait for a client that does not read
// before its messages are no longer read either, and progress is held back.
const maxUnwritten = 16 << 20

// maxUnread is how many bytes may wait before what belongs to no call is
// dropped: a client over HTTP may have no stream open that such messages go to.
const maxUnread = 1 << 20

// outbox is the one way to the reader of a stream: messages leave in the order
// they were put in, each whole. Putting never blocks.
type outbox struct {
	single bool // only the last message reaches the reader

	mu       sync.Mutex
	readers  int
	requests int                 // that it is for and that have not ended; 0 when it is a client's
	pending  []byte              // whole lines
	noted    map[string]struct{} // lines of pending that say no more when said twice
	closed   bool                // nothing is accepted any more
	err      error               // of the write that failed; set before done closes

	wake    chan struct{} // has a token when there is something to take
	drained chan struct{} // has a token when pending was taken
	done    chan struct{} // closed when run ended
}

// newOutbox returns an empty outbox. Messages that are put in are taken out by
// run, or by the one that takes when wake has a token.
func newOutbox() *outbox {
	return &outbox{
		wake:    make(chan struct{}, 1),
		drained: make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
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

// offer is put for a message that may be lost when the client does not read.
func (o *outbox) offer(msg []byte) {
	o.mu.Lock()
	behind := len(o.pending) > maxUnread
	o.mu.Unlock()
	if !behind {
		o.put(msg)
	}
}

// note is put for a message that says no more when it is said twice, such as that
// something has changed: while it waits to be read, the same is not queued again.
func (o *outbox) note(msg []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, waits := o.noted[string(msg)]; waits || o.closed {
		return
	}
	if o.noted == nil {
		o.noted = make(map[string]struct{})
	}
	o.noted[string(msg)] = struct{}{}
	o.pending = append(o.pending, msg...)
	poke(o.wake)
}

// end queues the last message of one of the requests that the outbox is for,
// which may be empty. With that of the last request it closes in one step:
// the one that takes the message knows that it is the last.
func (o *outbox) end(msg []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.pending = append(o.pending, msg...)
	o.requests--
	o.closed = o.requests <= 0
	poke(o.wake)
}

// close lets what is queued be written and accepts no more. It does not wait;
// done says when run has written everything.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	poke(o.wake)
}

// full reports whether the client is far behind with reading.
func (o *outbox) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending) > maxUnwritten
}

// attach counts a reader in, detach counts it out; read reports whether there
// is one. Readers share the messages: each goes to one of them.
func (o *outbox) attach() (readers int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers++
	return o.readers
}

func (o *outbox) detach() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers--
}

func (o *outbox) read() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.readers > 0
}

// run writes to w until the outbox is closed or a write fails.
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

// take swaps what is pending for an empty buffer. Nothing comes after what it
// returns with closed.
func (o *outbox) take(empty []byte) (batch []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch, o.pending = o.pending, empty
	clear(o.noted)
	poke(o.drained)
	return batch, o.closed
}

func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.closed, o.pending, o.noted = err, true, nil, nil
}

// poke leaves a token in a channel of capacity one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
