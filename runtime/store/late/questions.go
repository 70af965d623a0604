package late

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Answer implements [store.Questions].
func (s *Store) Answer(ctx context.Context, id string, a thread.Answer) (thread.Question, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (thread.Question, error) { return now.Answer(ctx, id, a) })
}

// Question implements [store.Questions].
func (s *Store) Question(ctx context.Context, id string) (thread.Question, error) {
	return ask(ctx, s, store.ErrNoQuestion, func(now store.Store) (thread.Question, error) { return now.Question(ctx, id) })
}

// Questions implements [store.Questions].
func (s *Store) Questions(ctx context.Context, f store.QuestionFilter) ([]thread.Question, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]thread.Question, error) { return now.Questions(ctx, f) })
}

// Lost implements [store.Keeper].
func (s *Store) Lost(ctx context.Context) (bool, error) {
	return ask(ctx, s, nil, func(now store.Store) (bool, error) { return now.Lost(ctx) })
}
