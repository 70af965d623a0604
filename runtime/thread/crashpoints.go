package thread

// Crashpoint names a point between two steps of a sequence that must survive a crash.
// The packages that have such sequences list their crash points.
type Crashpoint string

// Crashpoints is told when a process has come to a crash point. Tests pass one that
// kills the process there; in the program it is nil.
type Crashpoints func(Crashpoint)

// At tells r that the process has come to s.
func (r Crashpoints) At(s Crashpoint) {
	if r != nil {
		r(s)
	}
}
