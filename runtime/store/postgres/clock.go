package postgres

import (
	"sync/atomic"
	"time"

	leases "github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
)

// serverClock is the clock of the server, which all machines of a fleet have, as it was told
// with the first answer. From then on the time goes by this machine's own count, which nobody
// sets, and where that stands still while the machine sleeps by its clock.
type serverClock struct{ seen atomic.Pointer[seenTime] }

type seenTime struct{ here, there time.Time }

// set takes what the server has just said, in milliseconds since 1970.
func (c *serverClock) set(milliseconds int64) {
	c.seen.CompareAndSwap(nil, &seenTime{here: count(), there: time.UnixMilli(milliseconds)})
}

// count is without the part that stands still.
func count() time.Time { return leases.Uptime().Round(0) }

// now is the time of the server, or this machine's while nothing was heard of it.
func (c *serverClock) now() time.Time {
	seen := c.seen.Load()
	if seen == nil {
		return time.Now()
	}
	return seen.there.Add(count().Sub(seen.here))
}

// Now is the time: of the server, unless the options name another clock.
func (s *Server) Now() time.Time { return s.opts.Now() }
