package server

import "sync"

const (
	// maxInFlight is how many requests one client may have in flight. Clients
	// send a handful at once; this keeps a broken one from taking all memory.
	maxInFlight = 1024
	// maxInFlightBytes is how long the messages of those requests may be together.
	maxInFlightBytes = 64 << 20
)

// load is what is in flight, of one client or of all clients that have no
// session. A request counts until its handler has returned, even when it was
// cancelled.
type load struct {
	mu      sync.Mutex
	running int // handlers
	bytes   int // length of the messages they work on
}

// add enters a request whose message has size bytes, or says why there is no
// room for it. A long message is let in when it is alone.
func (l *load) add(size int) *rpcError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running >= maxInFlight {
		return busy("%d requests are in flight, the most that are served at once: wait for answers and send this one again", maxInFlight)
	}
	if l.running > 0 && l.bytes+size > maxInFlightBytes {
		return busy("the requests in flight are %d bytes long, and at most %d are served at once: wait for answers and send this one again", l.bytes, maxInFlightBytes)
	}
	l.running++
	l.bytes += size
	return nil
}

// remove takes a request that add let in out again.
func (l *load) remove(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	l.bytes -= size
}
