package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Census counts threads by how they stand.
type Census interface {
	// Census returns the counts, of which some may be a commit older than the others. It
	// reads the rows of threads that have not ended, and no others.
	Census(ctx context.Context) (Counts, error)
}

// Counts is how many threads that have not ended stand how.
type Counts struct {
	Created     int
	Running     int
	Queued      int             // of those created: they wait for a slot
	QueuedSince time.Time       // when the first of them came; zero: none waits
	Yielded     int             // of those running: they only wait for others
	Questions   []OpenQuestions // of threads that run, by kind
}

// OpenQuestions are the questions of one kind that nobody has answered.
type OpenQuestions struct {
	Kind  thread.QuestionKind
	Count int
	Since time.Time // when the first of them was asked
}
