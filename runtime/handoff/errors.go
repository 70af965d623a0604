package handoff

import "fmt"

// ChainError says that a thread may not be continued once more.
type ChainError struct {
	Length int // threads in the chain
	Max    int // continuation.max_chain
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("continuation.max_chain allows no longer chain: it has %d of %d threads", e.Length, e.Max)
}
