//go:build linux || darwin

package process

import "os"

// ID names a process so that it can be told from every other: its number is given
// out again, and means something else on another machine, after a restart of the
// machine, and in another namespace of process numbers, as a container has one.
type ID struct {
	PID          int
	Host         string
	Boot         string // which start of which kernel; empty where that is not known
	PIDNamespace string // on Linux; empty elsewhere
	Started      int64  // when, by the system's own count; 0 where that is not known
	Worker       string // name of the worker of a fleet that runs it; empty: none
}

// Place is where a process number means the same for all.
type Place struct {
	Host, Boot, PIDNamespace string
	Worker                   string // whose processes these are, see ID
}

// Here is the place of this process on a machine of this name. A field that the
// system does not tell is left empty.
func Here(host string) Place {
	return Place{Host: host, Boot: bootID(), PIDNamespace: pidNamespace()}
}

// Identify names a process of this place.
func (p Place) Identify(pid int) ID {
	return ID{PID: pid, Host: p.Host, Boot: p.Boot, PIDNamespace: p.PIDNamespace, Started: startOf(pid), Worker: p.Worker}
}

// Self names this process.
func (p Place) Self() ID { return p.Identify(os.Getpid()) }

// Reach is how far away a process is that somebody has recorded.
type Reach int

// The distances. Only a process that is near may be signalled or looked at by its
// number.
const (
	// Near: the number means here what it meant to whoever recorded it.
	Near Reach = iota
	// Walled: the same kernel runs it, or did, in another namespace of process
	// numbers. Its locks are seen here.
	Walled
	// Bygone: this machine ran it before it was started anew, so it has ended.
	Bygone
	// Elsewhere: another machine runs it. Its locks need not be seen here.
	Elsewhere
)

// Reach tells how far away a process is. One that was recorded without the start of
// its kernel, as by older versions, is known by its host alone.
func (p Place) Reach(id ID) Reach {
	switch {
	case id.Boot == "" || p.Boot == "":
		if id.Host == p.Host || id.Host == "" {
			return Near
		}
		return Elsewhere
	case id.Boot == p.Boot && id.PIDNamespace == p.PIDNamespace:
		return Near
	case id.Boot == p.Boot:
		return Walled
	case id.Host == p.Host:
		return Bygone
	}
	return Elsewhere
}

// Over tells whether a process is known to have ended: it was this machine's before
// a restart, or it was near and its number is nobody's any more, or another's.
func (p Place) Over(id ID) bool {
	switch p.Reach(id) {
	case Bygone:
		return true
	case Near:
		return !isSame(id.PID, id.Started) || Gone(id.PID)
	case Walled, Elsewhere: // nothing is known of it here
	}
	return false
}

// Signallable tells whether the number of a process is that very process here.
func (p Place) Signallable(id ID) bool {
	return id.PID > 1 && p.Reach(id) == Near && isSame(id.PID, id.Started)
}

// isSame tells whether the process that has a number now began when the one meant
// did. Where one of the two is not known the answer is yes.
func isSame(pid int, started int64) bool {
	now := startOf(pid)
	return started == 0 || now == 0 || now == started
}
