package store

import (
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ErrNotLinked says that a thread continues another one that does not name it, so
// it may not run. Each thread names one alone of all who were registered to
// continue it.
var ErrNotLinked = errors.New("thread is not linked to the one it continues")

// LinkedError says that a thread is continued already.
type LinkedError struct {
	Thread thread.ID
	By     thread.ID
}

func (e *LinkedError) Error() string {
	return fmt.Sprintf("thread %s is continued by %s already", e.Thread, e.By)
}

// PredecessorError says that a thread cannot be continued as it stands.
type PredecessorError struct {
	Thread  thread.ID
	State   thread.State
	Stopped bool // it has been asked to stop
	Handoff bool // it was to hand over, so it had to be running; otherwise it had to have ended
}

func (e *PredecessorError) Error() string {
	switch {
	case e.Handoff && e.Stopped:
		return fmt.Sprintf("thread %s has been asked to stop, so it cannot hand over", e.Thread)
	case e.Handoff:
		return fmt.Sprintf("thread %s is %s; only a running one can hand over", e.Thread, e.State)
	}
	return fmt.Sprintf("thread %s is %s; only one that has ended can be continued", e.Thread, e.State)
}

// checkHandoff holds an outcome to name a successor if, and only if, the thread
// is continued.
func checkHandoff(id thread.ID, o thread.Outcome) error {
	switch {
	case o.State != thread.Continued && o.Handoff != nil:
		return fmt.Errorf("outcome of %s has state %q and names a successor, %q", id, o.State, o.Handoff.NewThreadID)
	case o.State == thread.Continued && (o.Handoff == nil || o.Handoff.NewThreadID == ""):
		return fmt.Errorf("outcome of %s has state %q and names no successor", id, o.State)
	case o.State == thread.Continued && o.Handoff.NewThreadID == id:
		return fmt.Errorf("outcome of %s names the thread as its own successor", id)
	}
	return nil
}
