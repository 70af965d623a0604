package thread

import "crypto/rand"

// Incarnation names one stay of a worker in its fleet: a worker that has lost its lease, or
// was started again, is another one. The runs that it gives to threads begin with it, so
// that a process which has a run knows by whose lease it lives.
type Incarnation string

// incarnationLength is how many letters of a run name the incarnation: 50 bits, which leave
// 80 to the run.
const incarnationLength = 10

// NewIncarnation makes one that no other worker has, but for one in 2^50; the fleet refuses
// a second one.
func NewIncarnation() Incarnation { return Incarnation(rand.Text()[:incarnationLength]) }

// NewRun makes a run that lives by the lease of the incarnation; by none where that is
// empty.
func (i Incarnation) NewRun() Run {
	run := NewRun()
	if len(i) != incarnationLength {
		return run
	}
	return run[:len(runMark)] + Run(i) + run[len(runMark)+incarnationLength:]
}

// Incarnation is by whose lease a run may live: of one that no worker has given it is
// letters that no worker has. It is empty for a run of an older version.
func (r Run) Incarnation() Incarnation {
	if !r.NamesLife() {
		return ""
	}
	return Incarnation(r[len(runMark):][:incarnationLength])
}
