package mirror

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Begun is a fork of a thread there: a copy of it, which is to be the mirror of a new thread
// here.
type Begun struct {
	ID       uuid.UUID           // of the copy
	Messages []langgraph.Message // that it begins with
	// Thread is the one here whose copy was forked; empty: it is none of this project's.
	Thread thread.ID
}

// BeginFork copies a thread there and reads what was said in it. Nothing of the thread
// itself changes. The copy says that it belongs to no thread yet; the first time that the
// thread which is made of it is sent, it says that it is that one's. One that never is goes
// with a sweep, an hour later.
func (m *Mirror) BeginFork(ctx context.Context, id uuid.UUID, now time.Time) (b Begun, err error) {
	there, err := m.Client.Get(ctx, id)
	if err != nil {
		return b, err
	}
	copied, err := m.Client.Copy(ctx, id)
	if err != nil {
		return b, err
	}
	b.ID = copied.ID
	// The server does not give out a thread whose graph it does not know.
	_, err = m.Client.Patch(ctx, b.ID, map[string]any{
		langgraph.GraphKey: m.Graph, keyPlace: m.Place, keySelf: b.ID.String(), keyThread: nil, keyForkOf: id.String(), keyPending: now.Unix(),
	})
	if err != nil {
		return b, err
	}
	state, err := m.Client.State(ctx, b.ID)
	b.Messages = state.Messages
	if m.isOurs(there) {
		if here, bad := thread.ParseID(there.Text(keyThread)); bad == nil {
			b.Thread = here
		}
	}
	return b, err
}

// GiveUp takes the copy of a fork away that came to nothing, if one was made.
func (m *Mirror) GiveUp(ctx context.Context, b Begun) error {
	if b.ID == uuid.Nil {
		return nil
	}
	return m.Client.Delete(ctx, b.ID)
}
