// Package remote is [records.Records] for threads that several machines see. A server has
// the records; the folders of [records.Local] are a copy of that on this machine.
//
// Documents are written to the server and then to the folder. A transcript is written to
// the folder, as it always was, and what is new of it is shipped when it is synced, with
// the artifacts that it refers to, in one transaction of the run that writes. While
// somebody follows the thread from another machine it is shipped each second, too. Of a
// machine that is lost the others have everything up to the last checkpoint.
//
// A reader first brings the copy up to what the server has. A transcript that a process of
// this machine has written last is no copy: the server gets it from here, and may be
// behind. A note beside the folders says which it is.
package remote
