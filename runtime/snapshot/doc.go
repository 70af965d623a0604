// Package snapshot keeps the items of a project and its user as they were when a thread
// was started: its directives, tools and knowledge, with the files that lie beside them.
//
// A [Manifest] names each file by its space, path and SHA-256. It is canonical JSON that
// the state key has signed; the SHA-256 of that is its name, which stands in thread.json.
// [Blobs] keeps the manifest and the contents under their hashes, so that what two
// snapshots share is kept once. [Maker] makes a snapshot, at the cost of a look at each
// file where nothing has changed. [Pins] hold what a thread uses against its snapshot, and
// [Materialize] lays the files out on another machine.
//
// Settings are not part of it: a thread is handed those that its start has decided.
// Neither are keys, hidden files, the records of threads, and what is built in, which the
// manifest names by the program's version and the hash of its list of files.
package snapshot
