// Package sqlite keeps the registry and the budget ledger in two SQLite files
// of a project, registry.db and budget_ledger.db, for any number of processes
// on one machine.
//
// # Writing
//
// A process has one connection to write with and a few to read with. Writers
// of all processes stand in a queue (registry.lock, ledger.lock) before BEGIN
// IMMEDIATE: SQLite alone lets one writer starve others for seconds. Turns are
// given in the order of asking. A wait ends with the caller's context; a
// transaction that has begun is finished whatever becomes of the context, so
// that its outcome is always known. A process that dies in a transaction leaves
// the queue, and its changes are rolled back by whoever comes next.
//
// An error of the disk names the file and what is wrong with it: ENOSPC for a
// full one, what the operating system says of rights. Nothing of a transaction
// that met one is kept, and the store goes on when the reason is gone.
//
// # Durability
//
// Every commit survives the end of every process. What is promised to somebody
// (a registration, a change of state, a request to cancel, a budget, its
// settlement) is on disk when the call returns: PRAGMA synchronous is FULL.
// Snapshots that the next one replaces (cost so far, spend so far, process id)
// run at NORMAL and cost a fraction; a loss of power can take back the last of
// them, which never damages the file. The setting belongs to the connection
// and is made before each transaction; a second connection would double the
// cost of opening. A commit at FULL carries every earlier one to disk.
//
// # Schema
//
// Migrations are numbered files applied by goose, which the store for
// PostgreSQL can share; on an up-to-date file it takes 0.15 ms of an open that
// takes 0.6 ms for both databases. They run under the queue's lock and go
// forward only. A schema of a newer binary is refused.
//
// # Damage
//
// What SQLite finds to be damaged is a [store.CorruptError]. [SetAside] moves
// such a file out of the way, Open makes a new one, and Restore fills it from
// the threads' folders. A database that is made where threads have folders, be
// it after SetAside or because somebody removed the file, is marked as lossy
// (PRAGMA user_version) until then.
//
// Every call compares the file at the path with the one that is open, and opens
// the new one when they differ, so that no process goes on in a file that was
// moved. SQLite removes a write-ahead log by its name when the last connection
// is closed, but not when the database is not at its path any more, where the
// name is that of the new one's log.
//
// # What is remembered
//
// Writers count their commits, beside the locks of the queue: a number is raised
// before a commit and another one when it is visible. As long as both are the
// same as before, nobody has committed, and rows that were read need not be read
// again. When they differ from each other, a writer is at work or was killed, and
// PRAGMA data_version decides. That also finds what is committed without this
// package, or beside a lock file that somebody removed, but only after
// Options.Poll: until then a read of one row, or of the open questions, may tell
// what was.
//
// # Waking up
//
// Changes watches the number of commits that are visible through the operating
// system, and asks for PRAGMA data_version every Options.Poll. Where the file
// cannot be watched the number is read every 100 ms. So long apart come the
// values, too, when commits follow each other without rest, since hundreds of
// processes may listen; the first 30 come at once. Nothing is watched or polled
// while nobody listens.
package sqlite
