package handoff

import "fmt"

// ChainError says that a thread may not be continued once more.
type ChainError struct {
	Handoffs int // since a person's last message
	Max      int // continuation.max_chain
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("continuation.max_chain allows no more handoffs: there were %d of %d since a person's last message", e.Handoffs, e.Max)
}
