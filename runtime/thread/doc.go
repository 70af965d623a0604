// Package thread is the vocabulary every other package speaks: ids, states and
// the moves between them, costs, limits, events, outcomes and the reasons a
// thread stops. It imports nothing but the standard library, so that any
// package may import it.
//
// # States
//
//	             ┌────────────► cancelled
//	created ──► running ──┬──► completed
//	   │                  ├──► error
//	   └──► error         └──► continued
//
// A created thread is registered but has not been claimed by its process; a
// running one has a live process that holds the life of its run.
// Terminal states never change. The table is [CanMove]; the store applies a
// move as one guarded UPDATE, so that of two processes exactly one succeeds.
package thread
