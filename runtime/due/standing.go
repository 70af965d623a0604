package due

import "time"

// Standing is how far somebody is behind for whom threads are noted.
type Standing struct {
	Threads int       // that are due
	Oldest  time.Time // when the one that waits longest was noted; zero: none is due
	Sender  string    // the machine that sends at the moment; empty: none does, or it is not known
	// Failure is what the last attempt met, and FailedAt when; empty: nothing speaks against
	// the next one.
	Failure  string
	FailedAt time.Time
}

// Standing is how far the receiver of the notes is behind.
func (n Notes) Standing() (s Standing, err error) {
	due, err := n.look()
	if s.Threads = len(due); s.Threads > 0 {
		s.Oldest = due[0].At
	}
	return s, err
}
