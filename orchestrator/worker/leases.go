package worker

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// leases decide when a worker looks at the threads of others. That a lease has run out is seen
// once, so a sweep that has failed is made again.
type leases struct {
	own     thread.Incarnation
	swept   bool                        // all threads were looked at once
	alive   map[thread.Incarnation]bool // at the last look
	dead    map[thread.Incarnation]bool // whose threads are still to be looked at
	failed  int                         // sweeps in a row
	pausing int                         // looks until the next sweep
}

// mostPause is how many looks pass at most between two sweeps that fail: about a minute of
// them.
const mostPause = 32

// look takes the leases that go on now, and reports whether to sweep. They are read before the
// sweep: one that runs out during it is seen at the next look.
func (l *leases) look(now map[thread.Incarnation]bool) (sweep bool) {
	for before := range l.alive {
		if now[before] || before == l.own {
			continue
		}
		if l.dead == nil {
			l.dead = map[thread.Incarnation]bool{}
		}
		l.dead[before], l.pausing = true, 0
	}
	l.alive = now
	if l.swept && len(l.dead) == 0 {
		return false
	}
	l.pausing--
	return l.pausing < 0
}

// done takes whether a sweep could look at all threads.
func (l *leases) done(all bool) {
	if all {
		l.swept, l.failed, l.pausing = true, 0, 0
		clear(l.dead)
		return
	}
	l.failed++
	l.pausing = min(1<<min(l.failed, 10)-2, mostPause)
}
