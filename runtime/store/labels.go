package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Labels keeps what people call threads, and note of them.
type Labels interface {
	// Label gives a thread another name, other metadata, or both. All threads of its
	// chain are one piece of work and are labelled alike, also those that continue it
	// later. The row of the thread after it is returned, or an error wrapping
	// thread.ErrNotFound or thread.ErrBadLabel, and then nothing has changed.
	Label(ctx context.Context, id thread.ID, l LabelChange, at time.Time) (thread.Record, error)
}

// LabelChange says what of the labels of a thread is to be another.
type LabelChange struct {
	Name     string          // empty: as it is
	Metadata json.RawMessage // a JSON merge patch (RFC 7396); empty: as it is
}
