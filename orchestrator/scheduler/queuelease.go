package scheduler

import "github.com/rye-mcp/rye-mcp/runtime/life"

// Lease is the right to move the queue and to look whether the threads that
// have a slot are dead. One of those who wait has it at a time. The others move
// the queue now and then, for perhaps only they have the key to the provider of a
// thread in it.
type Lease struct {
	life    life.Life
	has     life.Hold // nil: somebody else has it, or nobody
	skipped int
}

// maxSkipped is how often in a row somebody without the right leaves the queue.
const maxSkipped = 5

// Turn reports whether it is upon this wait to move the queue.
func (q *Lease) Turn() bool {
	if q.take() || q.skipped == maxSkipped {
		q.skipped = 0
		return true
	}
	q.skipped++
	return false
}

// take takes the right when it is free, and reports whether it is held.
func (q *Lease) take() bool {
	if q.has == nil {
		has, err := q.life.Lease("line")
		if err != nil {
			return false
		}
		q.has = has
	}
	return true
}

// Release gives the right back.
func (q *Lease) Release() {
	if q.has != nil {
		_ = q.has.Release()
		q.has = nil
	}
}

// Held reports whether this wait has the right.
func (q *Lease) Held() bool { return q.has != nil }

// NewLease is the right to move the queue, which nobody has yet by it.
func (c *Scheduler) NewLease() *Lease { return &Lease{life: c.Threads.Life} }
