package mirror

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Outbox has which threads are due.
type Outbox interface {
	// Note says that a thread is due. Repeating it changes nothing.
	Note(context.Context, thread.ID) error
	// List are the threads that are due, the first noted first.
	List(context.Context) ([]thread.ID, error)
	// IsDue reports whether a thread is due.
	IsDue(context.Context) (bool, error)
	// Take says that a thread is being sent. A later change makes another note, which Sent
	// leaves. After a crash the thread is due as before.
	Take(context.Context, thread.ID) error
	// Sent forgets what was taken. Mine is false when others have got the right to send
	// meanwhile: the thread is then due again.
	Sent(context.Context, thread.ID) (mine bool, err error)
	// Tried keeps what an attempt to send all has met, for people; empty: nothing.
	Tried(ctx context.Context, failure string) error
}

// Notes is an outbox of files, of threads that are kept on this machine. A sender holds a
// lease that ends with its process.
type Notes struct {
	due.Notes

	Now func() time.Time
}

var _ Outbox = Notes{}

// Note implements [Outbox].
func (n Notes) Note(_ context.Context, id thread.ID) error { return n.Notes.Note(id) }

// List implements [Outbox].
func (n Notes) List(context.Context) (ids []thread.ID, err error) {
	notes, _, err := n.Notes.List(n.Now())
	for _, t := range notes {
		ids = append(ids, t.ID)
	}
	return ids, err
}

// IsDue implements [Outbox].
func (n Notes) IsDue(context.Context) (bool, error) { return n.Count() > 0, nil }

// Take implements [Outbox].
func (n Notes) Take(_ context.Context, id thread.ID) error { return n.Notes.Take(id) }

// Sent implements [Outbox].
func (n Notes) Sent(_ context.Context, id thread.ID) (mine bool, err error) {
	return true, n.Notes.Sent(id)
}

// Tried implements [Outbox]. The sender's [Rest] keeps it.
func (Notes) Tried(context.Context, string) error { return nil }
