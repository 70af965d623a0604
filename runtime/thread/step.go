package thread

// Step names a point between two steps of a sequence that must survive a crash.
// The packages that have such sequences list their points.
type Step string

// Reached is told when a process has come to a step. Tests pass one that kills
// the process there; in the program it is nil.
type Reached func(Step)

// At tells r that the process has come to s.
func (r Reached) At(s Step) {
	if r != nil {
		r(s)
	}
}
