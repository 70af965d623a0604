package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Questions keeps what threads wait to be told. They are rows, so that whoever
// can open the store can answer, and neither a restart of the server nor the end
// of the process that has shown a question loses it.
type Questions interface {
	// Answer closes a question and returns it. The first answer counts: a later
	// one gets an *AnsweredError, with the question as it is. An unknown id is
	// ErrNoQuestion.
	Answer(ctx context.Context, id string, a thread.Answer) (thread.Question, error)
	// Question returns a question, or an error wrapping ErrNoQuestion.
	Question(ctx context.Context, id string) (thread.Question, error)
	// Questions lists questions, oldest first. Both kinds of change, asking and
	// answering, wake the receivers of Watcher.Changes.
	Questions(ctx context.Context, f QuestionFilter) ([]thread.Question, error)
}

// QuestionFilter selects questions.
type QuestionFilter struct {
	ThreadID thread.ID // empty: of all threads
	Open     bool      // only those that nobody has answered
}

// ErrNoQuestion says that no question has that id.
var ErrNoQuestion = errors.New("no such question")

// AnsweredError says that a question has been answered before.
type AnsweredError struct{ Question thread.Question }

func (e *AnsweredError) Error() string {
	a := e.Question.Answer
	return fmt.Sprintf("the question of thread %s has been answered: %s, by %s", e.Question.ThreadID, a.Decision, a.By)
}
