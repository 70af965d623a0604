// Package recordserver keeps the records of a project's threads in its schema of
// PostgreSQL: files in chunks, and artifacts by the hash of their content, once for the
// project.
//
// Every write of a run begins by locking the thread's row and finding that run in it, so
// that a run that was replaced writes nothing ([store.ErrFenced]); without a run only the
// records of a thread are written that has ended, or has no row. A file that grows has one
// writer at a time, of however many processes of a run.
//
// Somebody else wrote what is read here: a chunk is bounded before it is fetched, and held
// against its hash and its place.
package recordserver
