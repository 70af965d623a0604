package sqlite

import (
	"errors"
	"os"
)

// turnstile is a lock between processes that is had in the order of asking. The
// lock of one file has that order among those who wait for it, but whoever lets
// go of it and asks again at once is faster than the one who is woken. So there
// are two: only who has the gate may wait for the turn, and lets go of the gate
// with the turn in hand. Who asks again finds the next one in the gate.
type turnstile struct{ gate, turn *os.File }

// gateEnding tells the file of the gate from that of the turn.
const gateEnding = ".gate"

func openTurnstile(path string) (turnstile, error) {
	turn, err := openPrivate(path)
	if err != nil {
		return turnstile{}, err
	}
	gate, err := openPrivate(path + gateEnding)
	if err != nil {
		return turnstile{}, errors.Join(err, turn.Close())
	}
	return turnstile{gate: gate, turn: turn}, nil
}

// try takes the turn if nobody has it or waits for it.
func (t turnstile) try() (bool, error) {
	if got, err := tryLock(t.gate); !got {
		return false, err
	}
	got, err := tryLock(t.turn)
	t.leave(t.gate)
	return got, err
}

// wait takes the turn, for as long as that lasts.
func (t turnstile) wait() error {
	if err := waitLock(t.gate); err != nil {
		return err
	}
	defer t.leave(t.gate)
	return waitLock(t.turn)
}

// release gives the turn back.
func (t turnstile) release() { t.leave(t.turn) }

// leave unlocks one of the files. That cannot fail for an open file which is
// locked; if it did, closing it would still free the lock.
func (turnstile) leave(f *os.File) { _ = unlock(f) }

func (t turnstile) close() error { return errors.Join(t.gate.Close(), t.turn.Close()) }
