package postgres

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// awayFor is how long a server is not asked again that a call has waited for in vain: who needs
// it many times would wait as often.
const awayFor = 2 * time.Second

// away is what the last call has found of a server that cannot be reached.
type away struct{ last atomic.Pointer[inVain] }

// inVain is a call that has waited for the server in vain.
type inVain struct {
	err error
	at  time.Time
}

// recently is the error of a call that has waited in vain a moment ago; nil: none has, or
// another has reached the server since.
func (a *away) recently() error {
	if last := a.last.Load(); last != nil && time.Since(last.at) < awayFor {
		return last.err
	}
	return nil
}

// note notes how a call has ended. Of one that its caller has given up nothing follows.
func (a *away) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, ErrUnreachable):
		a.last.Store(&inVain{err, time.Now()})
	case a.last.Load() != nil:
		a.last.Store(nil)
	}
}
