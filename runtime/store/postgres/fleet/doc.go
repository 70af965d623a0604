// Package fleet keeps the workers of a store on PostgreSQL. Each has one lease for all the
// threads that it runs: a row of rye.workers whose time the database counts, by its own
// clock. The worker counts for itself, by a clock that nobody sets, and takes itself for
// lost at two thirds of the lease, before the database does. Others that see the lease run
// out settle its threads. A lease that has run out is never renewed: what has been seen
// expired stays so.
//
// A run that no worker has given has a lease of its own, in a row without slots. Its starter takes
// it, and the thread's process renews it, which goes on when it is lost: the run in the thread's
// row says when somebody has ended the thread.
//
// When the clock of the database jumps ahead by more than a lease, all leases have run out:
// the workers kill what they run and join anew. When it is set back, leases that are renewed
// are as before, and one whose worker is gone lasts as much longer.
package fleet
