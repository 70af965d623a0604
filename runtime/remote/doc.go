// Package remote is [records.Records] for threads that several machines see. A server has
// the records; the folders of [records.Local] are a copy of that on this machine.
//
// Documents are written to the server and then to the folder. A transcript is written to
// the folder, as it always was, and what is new of it is shipped when it is synced, with
// the artifacts that it refers to, in one transaction of the run that writes; while somebody
// follows the thread from another machine also each second. Of a machine that is lost the
// others have everything up to the last checkpoint.
//
// Whoever reads brings the copy up to the server first. A transcript that a process of this
// machine has written last is not a copy: it is what the server gets, and may be ahead of
// it. A note beside the folders says which it is.
package remote
