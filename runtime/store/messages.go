package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Messages keeps what threads are to be told while they work, a queue a thread. How many
// nobody has read yet is [thread.Record.Unread]. When a thread is continued, by a handoff
// or by being resumed, the transaction that links the two gives its successor what it
// has not read. The texts of what was read are not kept; of the rest the newest 10 000
// rows are.
type Messages interface {
	// Post adds a message to the queue of its reader, and returns how many stand in it
	// now. A thread that has ended, is asked to stop, or reads no more (EndReading), is an
	// *UnreadableError, one whose queue is full a *QueueFullError, and one that does not exist thread.ErrNotFound.
	// A note is held to a bound as well, or is a *NotesError. Posting wakes the
	// receivers of Watcher.Changes.
	Post(ctx context.Context, m thread.Message, bound NoteBound) (unread int, err error)
	// Unread returns the messages that nobody has read, oldest first.
	Unread(ctx context.Context, reader thread.ID) ([]thread.Message, error)
	// Ended returns which of some threads have ended, as they were asked for. One that is
	// continued has ended when the last of its chain has; whose row is that one's. It is
	// remembered until somebody commits.
	Ended(ctx context.Context, ids []thread.ID) ([]Ended, error)
	// Deliver records that a run has put messages of its thread into the transcript. A
	// repeat changes nothing. It is on disk when it returns, as the transcript must be
	// before: what is recorded here is never read again. When the thread has another run
	// the error is ErrFenced.
	Deliver(ctx context.Context, reader thread.ID, run thread.Run, ids []string, at time.Time) error
	// EndReading has Post refuse every further message to a thread, for as long as it has
	// this run, and reports whether that is so. While an instruction is unread it is not,
	// unless whatever says so. A repeat changes nothing. When the thread has another run
	// the error is ErrFenced.
	EndReading(ctx context.Context, reader thread.ID, run thread.Run, whatever bool, at time.Time) (ended bool, err error)
}

// Ended is a thread that has ended.
type Ended struct {
	Asked  thread.ID
	Record thread.Record // of the last of its chain
}

// Bounds of the queue of one thread.
const (
	MaxMessageBytes = 16 << 10 // of one text
	MaxUnread       = 64       // messages
	MaxUnreadPerson = 80       // where a person at a terminal posts: nobody shall keep them out
	MaxUnreadNotes  = 48       // of those: the rest is for those who steer
)

// NoteBound bounds what one thread writes to others within one turn of its own.
type NoteBound struct {
	Notes int
	Bytes int
}

// UnreadableError says that a thread will not read any message.
type UnreadableError struct {
	Thread  thread.ID
	State   thread.State
	By      thread.ID // that continues it
	Stopped bool      // it has been asked to stop
	Ending  bool      // it has taken its last turn
}

func (e *UnreadableError) Error() string {
	switch {
	case e.Stopped:
		return fmt.Sprintf("thread %s has been asked to stop, and reads no message any more", e.Thread)
	case e.Ending:
		return fmt.Sprintf("thread %s has taken its last turn and is ending, and reads no message any more", e.Thread)
	}
	return fmt.Sprintf("thread %s has ended (%s), and reads no message any more", e.Thread, e.State)
}

// QueueFullError says that a thread has too much to read.
type QueueFullError struct {
	Thread thread.ID
	Unread int
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("thread %s has %d unread messages, and its queue takes no more", e.Thread, e.Unread)
}

// NotesError says that a thread has written enough to others in its turn.
type NotesError struct {
	Sender thread.ID
	NoteBound
}

func (e *NotesError) Error() string {
	return fmt.Sprintf("thread %s has written its notes of this turn: at most %d, of %d bytes together", e.Sender, e.Notes, e.Bytes)
}

// ErrNoText says that a message has no text, or one that is too long.
var ErrNoText = errors.New("a message has a text of 1 to 16384 bytes")
