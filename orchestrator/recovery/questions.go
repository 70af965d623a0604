package recovery

import (
	"context"
	"errors"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// closeQuestions closes what a dead thread has asked. Should this not be done,
// nobody is shown the question all the same: its thread has ended.
func (s *Sweeper) closeQuestions(ctx context.Context, id thread.ID) {
	open, err := s.Finisher.Store.Questions(ctx, store.QuestionFilter{ThreadID: id, Open: true})
	for _, q := range open {
		_, answerErr := s.Finisher.Store.Answer(ctx, q.ID, thread.Answer{
			Decision: thread.Stop, By: "nobody: the process of the thread is gone", At: s.Finisher.Now(),
		})
		if _, late := errors.AsType[*store.AnsweredError](answerErr); !late {
			err = errors.Join(err, answerErr)
		}
	}
	if err != nil {
		s.Log.Error().Err(err).Str("thread_id", string(id)).Msg("could not close the questions of a dead thread")
	}
}
