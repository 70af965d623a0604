//go:build linux || darwin

package process

import "os"

// Holder names the process that keeps others from locking one of the files: what
// the system tells counts for more than what was recorded there, which may be about
// a holder before. Of several a suspended one is named, since the others may wait
// for it themselves. It is the zero ID when nobody knows.
func (p Place) Holder(recorded ID, paths ...string) (holder ID, stopped bool) {
	for _, path := range paths {
		for _, pid := range lockHolders(path) {
			switch {
			case pid == os.Getpid():
			case Stopped(pid):
				return p.Identify(pid), true
			case holder.PID == 0:
				holder = p.Identify(pid)
			}
		}
	}
	if holder.PID == 0 && recorded.PID != os.Getpid() {
		holder = recorded
		stopped = p.Signallable(recorded) && Stopped(recorded.PID)
	}
	return holder, stopped
}
