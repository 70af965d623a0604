// Package worker runs threads for a fleet: a [Worker] has one lease, takes threads from the
// queues of its projects while it has slots free, stops those whose cancel is on record, and
// kills what it runs when it loses the lease. A [Guest] is any other process that shares the
// store. It has a lease only for what it starts or settles itself, and leaves the queue to
// the workers of the project, when there are any.
package worker
