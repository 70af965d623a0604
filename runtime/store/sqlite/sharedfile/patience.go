package sharedfile

import (
	"fmt"
	"os"
	"time"
)

// Patience is how long a wait for other processes may last in which none of them
// commits anything. As long as they do the wait goes on: they are at work, and
// every one has its turn.
type Patience struct {
	Idle    time.Duration // for one that runs, and may be slow
	Stopped time.Duration // for one that is suspended, and may be so for ever
}

// defaultPatience is for callers that have somebody to tell.
func defaultPatience() Patience { return Patience{Idle: 10 * time.Second, Stopped: time.Second} }

// or is p with what is missing from other.
func (p Patience) or(other Patience) Patience {
	if p.Idle <= 0 {
		p.Idle = other.Idle
	}
	if p.Stopped <= 0 {
		p.Stopped = min(other.Stopped, p.Idle)
	}
	return p
}

// every is how often somebody who waits looks whether others go on.
func (p Patience) every() time.Duration {
	const least, most = time.Millisecond, 100 * time.Millisecond
	return min(max(p.Stopped/10, least), most)
}

// Wait is a wait in which nobody has committed for some time.
type Wait struct {
	Path   string        // what is waited for
	Files  []string      // which the process that is waited for may have locked
	Record []byte        // left by the last who had the turn; anybody may have written it
	Waited time.Duration // without a commit
}

// waiting is what the waits for one database have in common.
type waiting struct {
	path     string // which errors name
	files    []string
	commits  commitCounter
	patience Patience
	busy     func(Wait) (stopped bool, err error)
}

// stall is one wait: since when nobody has committed.
type stall struct {
	*waiting
	since time.Time
	done  uint64
}

func (w *waiting) newStall(now time.Time) stall {
	done, _ := readNumber(w.commits.done)
	return stall{waiting: w, since: now, done: done}
}

// over returns the error of a wait that has lasted for too long.
func (s *stall) over(now time.Time) error {
	if done, _ := readNumber(s.commits.done); done != s.done {
		s.done, s.since = done, now
	}
	waited := now.Sub(s.since)
	if waited < s.patience.Stopped {
		return nil
	}
	stopped, err := s.holder(waited)
	if waited < s.patience.Idle && !stopped {
		return nil
	}
	return err
}

// holder asks whether the process that is waited for is suspended, and what is said
// of it.
func (w *waiting) holder(waited time.Duration) (stopped bool, err error) {
	if w.busy == nil {
		return false, fmt.Errorf("%s has been held by another process for %v", w.path, waited)
	}
	return w.busy(Wait{Path: w.path, Files: w.files, Record: readRecord(w.commits.begun), Waited: waited})
}

// The process that has the turn says who it is in the file of the gate, behind the
// number, for those who wait: the operating system does not tell everywhere who
// holds a lock, and not across containers.
const (
	recordAt = numberAt + 8
	// RecordSize is how long Options.Record may be.
	RecordSize = 256
)

// padded covers what a longer record has left; nil when there is none that fits.
func padded(record []byte) []byte {
	if len(record) == 0 || len(record) > RecordSize {
		return nil
	}
	full := make([]byte, RecordSize)
	for i := copy(full, record); i < RecordSize; i++ {
		full[i] = ' '
	}
	return full
}

// readRecord returns what stands where a record is; nil where nobody has left one.
func readRecord(f *os.File) []byte {
	record := make([]byte, RecordSize)
	if _, err := f.ReadAt(record, recordAt); err != nil {
		return nil
	}
	return record
}
