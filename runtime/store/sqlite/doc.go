// Package sqlite keeps the registry and the budget ledger in two SQLite files
// of a project, registry.db and budget_ledger.db, for any number of processes
// on one machine. It is the engine alone: what is asked of the two, and said to them,
// is that of package sqlstore.
//
// # Writing
//
// Either file is a [sharedfile.File]: writers of all processes stand in its queue
// (registry.lock, ledger.lock), and a process that is suspended or killed does not
// hold up the others for ever.
//
// An error of the disk names the file and what is wrong with it: ENOSPC for a
// full one, what the operating system says of rights. Nothing of a transaction
// that met one is kept, and the store goes on when the reason is gone.
//
// # Durability
//
// A promise to somebody (a registration, a change of state, a request to cancel, a
// budget, its settlement) is on disk when the call returns. Snapshots that
// the next one replaces (cost so far, spend so far, process id) are not waited for.
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
// Damage that SQLite finds is a [store.CorruptError]. [SetAside] moves
// such a file out of the way, Open makes a new one, and Restore fills it from
// the threads' folders. A database that is made where threads have folders, be
// it after SetAside or because somebody removed the file, is marked as lossy
// (PRAGMA user_version) until then.
//
// Every call turns to the file that is at the path by then, so that no process goes
// on in one that was moved.
//
// # What is remembered
//
// Rows that were read are not read again until somebody commits. A commit that is made
// without this package is found after Options.Poll: until then a read of one row, or
// of the open questions, may tell what was.
package sqlite
