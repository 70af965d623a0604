package due

import (
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/life"
)

// Drain sends until no more is due, each time with the right to send, which one process of a
// project has. Where another process has it the error wraps [life.ErrHeld]: that one looks
// again when it has let go, and finds what this one was started for.
func Drain(lease func() (life.Hold, error), send func() error, more func() (bool, error)) error {
	for {
		hold, err := lease()
		if err != nil {
			return err
		}
		if err := errors.Join(send(), hold.Release()); err != nil {
			return err
		}
		// A process that noted something while the lease was held has started no sender.
		if is, err := more(); err != nil || !is {
			return err
		}
	}
}
