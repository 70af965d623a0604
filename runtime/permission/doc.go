// Package permission decides what a thread may do. A thread holds a set of
// capability patterns of its own and, as a ceiling, the sets of all its
// ancestors; a call passes when every one of these sets allows it. Holding the
// sets side by side keeps the intersection exact, which no single pattern
// computed from two could be.
//
// How dangerous the capabilities are that a directive declares, and whether its
// author has accepted that, is judged apart from what they allow: see [Judge].
//
// All functions are pure, and what they cannot match they deny.
package permission
