package sqlite

import (
	"encoding/json"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Patience is how long a wait for other processes may last in which none of them
// commits anything. As long as they do the wait goes on: they are at work, and
// every one has its turn.
type Patience struct {
	Idle    time.Duration // for one that runs, and may be slow
	Stopped time.Duration // for one that is suspended, and may be so for ever
}

// defaultPatience is for who has somebody to tell.
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

// waiting is what the waits for one database have in common.
type waiting struct {
	path     string // of the lock file, which errors name
	files    []string
	tally    tally
	patience Patience
	holder   func(recorded thread.Process, files ...string) thread.Holder
}

// stall is one wait: since when nobody has committed.
type stall struct {
	*waiting
	since time.Time
	done  uint64
}

func (w *waiting) newStall(now time.Time) stall {
	done, _ := readNumber(w.tally.done)
	return stall{waiting: w, since: now, done: done}
}

// over returns a *thread.BusyError when the wait has lasted for too long.
func (s *stall) over(now time.Time) error {
	if done, _ := readNumber(s.tally.done); done != s.done {
		s.done, s.since = done, now
	}
	waited := now.Sub(s.since)
	if waited < s.patience.Stopped {
		return nil
	}
	holder := s.who()
	if waited < s.patience.Idle && !holder.Stopped {
		return nil
	}
	return &thread.BusyError{Path: s.path, Waited: waited, Holder: holder}
}

// who tells which process is waited for.
func (w *waiting) who() thread.Holder {
	recorded := readHolder(w.tally.begun)
	if w.holder == nil {
		return thread.Holder{Process: recorded}
	}
	return w.holder(recorded, w.files...)
}

// The process that has the turn says who it is in the file of the gate, behind the
// number, for those who wait: the operating system does not tell everywhere who
// holds a lock, and not across containers.
const (
	holderAt   = tallyAt + 8
	holderSize = 256
)

// encodeHolder is the record of a process. One that does not fit, as with the
// longest of host names, leaves the host out.
func encodeHolder(p thread.Process) []byte {
	text, err := json.Marshal(p)
	if err == nil && len(text) > holderSize {
		p.Host = ""
		text, err = json.Marshal(p)
	}
	if err != nil || len(text) > holderSize {
		return nil
	}
	record := make([]byte, holderSize)
	for i := copy(record, text); i < holderSize; i++ {
		record[i] = ' '
	}
	return record
}

// readHolder returns what encodeHolder wrote. What anybody else wrote counts as
// nothing.
func readHolder(f interface {
	ReadAt(p []byte, off int64) (int, error)
},
) (p thread.Process) {
	record := make([]byte, holderSize)
	if _, err := f.ReadAt(record, holderAt); err != nil {
		return thread.Process{}
	}
	if err := json.Unmarshal(record, &p); err != nil || p.PID < 0 {
		return thread.Process{}
	}
	return p
}
