// Package sharedfile is a SQLite database that any number of processes on one
// machine read and write at once: the queue of its writers, the count of commits,
// news of them, and the connections of this process. Its [Owner] knows what
// stands in the database.
//
// # Writing
//
// A process has one connection to write with and a few to read with, or one for both
// (Options.One). Writers
// of all processes stand in a [Queue] before BEGIN IMMEDIATE: SQLite alone lets one
// writer starve others for seconds. Turns are given in the order of asking, by the
// locks of two files. A wait ends with the caller's context; a transaction that has
// begun is finished whatever becomes of the context, so that its outcome is always
// known. A process that dies in a transaction leaves the queue, and its changes are
// rolled back by whoever comes next. A wait for a process that does not go on is
// bounded, see [Patience].
//
// # Durability
//
// Every commit survives the end of every process. One that is [Durable] is on disk
// when the call returns; one that is [Relaxed] costs a fraction, and a loss of power
// can take back the last of them, which never damages the file. The setting belongs
// to the connection and is made before each transaction; a second connection would
// double the cost of opening. A durable commit carries every earlier one to disk.
//
// # Replacement
//
// A write compares the file at the path with the one that is open, and opens
// the new one when they differ, so that no process goes on in a file that was
// moved; a reader calls [File.Follow] first. SQLite removes a write-ahead log
// by its name when the last connection is closed, but not when the database is not
// at its path any more, where the name is that of the new one's log.
//
// # What is remembered
//
// Writers count their commits, beside the locks of the queue: a number is raised
// before a commit and another one when it is visible. As long as both are the
// same as before, nobody has committed, and what was read need not be read again:
// [View.Look] tells. When they differ from each other, a writer is at work or was
// killed, and PRAGMA data_version decides. That also finds what is committed without
// this package, or beside a lock file that somebody removed, but only after
// Options.Poll.
//
// # Waking up
//
// [File.Changes] watches the number of commits that are visible through the
// operating system, and asks for PRAGMA data_version every Options.Poll. It reads the
// number every 100 ms when the file cannot be watched. The values come that far
// apart, too, when commits follow each other without rest, since hundreds of
// processes may listen; the first 30 come at once. Nothing is watched or polled
// while nobody listens.
package sharedfile
