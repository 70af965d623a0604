package sharedfile

import (
	"errors"
	"os"
)

// fairLock is a lock between processes that is had in the order of asking. The
// lock of one file has that order among those who wait for it, but whoever lets
// go of it and asks again at once is faster than the one who is woken. So there
// are two: only who has the gate may wait for the turn, and lets go of the gate
// with the turn in hand. A process that asks again finds the next one in the gate.
type fairLock struct{ gate, turn *os.File }

// gateEnding tells the file of the gate from that of the turn.
const gateEnding = ".gate"

func openFairLock(path string) (fairLock, error) {
	turn, err := openLockFile(path)
	if err != nil {
		return fairLock{}, err
	}
	gate, err := openLockFile(path + gateEnding)
	if err != nil {
		return fairLock{}, errors.Join(err, turn.Close())
	}
	return fairLock{gate: gate, turn: turn}, nil
}

// try takes the turn if nobody has it or waits for it.
func (l fairLock) try() (bool, error) {
	if got, err := tryLock(l.gate); !got {
		return false, err
	}
	got, err := tryLock(l.turn)
	l.leave(l.gate)
	return got, err
}

// wait takes the turn, for as long as that lasts.
func (l fairLock) wait() error {
	if err := waitLock(l.gate); err != nil {
		return err
	}
	defer l.leave(l.gate)
	return waitLock(l.turn)
}

// release gives the turn back.
func (l fairLock) release() { l.leave(l.turn) }

// leave unlocks one of the files. That cannot fail for an open file which is
// locked; if it did, closing it would still free the lock.
func (fairLock) leave(f *os.File) { _ = unlock(f) }

func (l fairLock) close() error { return errors.Join(l.gate.Close(), l.turn.Close()) }

// openLockFile opens the file of a lock for reading and writing, creating it
// for its owner only.
func openLockFile(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
