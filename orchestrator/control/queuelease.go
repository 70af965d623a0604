package control

import "github.com/rye-mcp/rye-mcp/runtime/life"

// queueLease is the right to move the queue and to look whether the threads that
// have a slot are dead. One of those who wait has it at a time. The others move
// the queue now and then, for perhaps only they have the key to the provider of a
// thread in it.
type queueLease struct {
	life    life.Life
	has     life.Hold // nil: somebody else has it, or nobody
	skipped int
}

// maxSkipped is how often in a row somebody without the right leaves the queue.
const maxSkipped = 5

// turn reports whether it is upon this wait to move the queue.
func (q *queueLease) turn() bool {
	if q.take() || q.skipped == maxSkipped {
		q.skipped = 0
		return true
	}
	q.skipped++
	return false
}

// take takes the right when it is free, and reports whether it is held.
func (q *queueLease) take() bool {
	if q.has == nil {
		has, err := q.life.Lease("line")
		if err != nil {
			return false
		}
		q.has = has
	}
	return true
}

func (q *queueLease) release() {
	if q.has != nil {
		_ = q.has.Release()
		q.has = nil
	}
}

// held reports whether this wait has the right.
func (q *queueLease) held() bool { return q.has != nil }
