// Package place decides whose the state of a project is: what its threads have left
// below .ai/state.
//
// A project folder may be a stranger's work, its state included. So state is
// believed only when this user's own state key signed it and it names this place: a
// random id, which the user space keeps with the folder's path. Three things name
// it: a small signed document beside the databases, read before those are opened;
// every thread.json; and a mark in each database, see [Seal.Mark].
//
// A stranger's state is left as it is, and the user's own threads are kept beside
// it, in a folder named after the state key. [Finder.Find] tells, and changes
// nothing; [Finder.Make] makes at first need what is missing.
//
// State of before there were places, which the user's item key signed, is taken
// over: from then on that key is accepted for this place, and nothing is signed
// again. A stranger's is adopted in the same way when its user says so.
package place
