package thread

import "slices"

// State is where a thread stands. It is stored as text.
type State string

const (
	// Created is registered by the spawner; left when the thread's process
	// claims it, or when it is cancelled or found dead before that.
	Created State = "created"
	// Running is claimed by its process; left through exactly one outcome.
	Running State = "running"
	// Completed means that the loop ended with a result. Set by the thread itself.
	Completed State = "completed"
	// Error means that the loop failed, or the process died. Set by the thread, or by
	// whoever finds its process gone.
	Error State = "error"
	// Cancelled is stopped on request, softly or by a signal. Set by the thread,
	// or by whoever stopped it when it could not do so itself.
	Cancelled State = "cancelled"
	// Continued has handed over to a successor in the same chain. Set by the thread.
	Continued State = "continued"
)

// States lists every state in the order a thread can pass them.
func States() []State {
	return []State{Created, Running, Completed, Error, Cancelled, Continued}
}

// EndStates lists the states in which a thread has ended.
func EndStates() []State {
	return slices.DeleteFunc(States(), func(s State) bool { return !s.Terminal() })
}

// moves is the whole transition table.
var moves = map[State][]State{
	Created: {Running, Error, Cancelled},
	Running: {Completed, Error, Cancelled, Continued},
}

// CanMove reports whether a thread may go from one state to the other.
func CanMove(from, to State) bool { return slices.Contains(moves[from], to) }

// Sources lists the states from which to can be entered.
func Sources(to State) []State {
	var from []State
	for _, s := range States() {
		if CanMove(s, to) {
			from = append(from, s)
		}
	}
	return from
}

// Terminal reports whether s never changes again.
func (s State) Terminal() bool { return s.Valid() && len(moves[s]) == 0 }

// Valid reports whether s is one of [States].
func (s State) Valid() bool { return slices.Contains(States(), s) }
