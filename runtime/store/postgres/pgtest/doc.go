// Package pgtest gives tests real PostgreSQL servers.
//
//	url := pgtest.Server(t) // a new, empty database; the cluster is shared by the tests of a package
//
//	c := pgtest.Start(t, pgtest.Options{}) // a cluster of its own, for tests that stop and suspend it
//	url := c.Database(t)
//	c.Kill(t)
//	c.Up(t)
//
// A cluster lies in a temporary folder, in memory where it may (/dev/shm) unless it has to
// be durable, listens on a Unix socket there and nowhere else, and runs as the user
// postgres when the tests run as root, which PostgreSQL refuses to do. A watchdog process
// holds the reading end of a pipe of the test's process: when that has ended, however it
// did, the watchdog stops the cluster and removes its folder. Only one folder
// for each version of PostgreSQL stays beside the others: every cluster begins as a copy of it.
//
// The clusters sort text as people do (ICU, en-US), not by bytes, so that what relies on
// the order of bytes shows.
//
// Where PostgreSQL is not installed tests are skipped with a line that says so; where
// the environment has CI, they fail.
package pgtest
