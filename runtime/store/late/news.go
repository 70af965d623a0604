package late

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// News implements [store.News].
func (s *Store) News(ctx context.Context, after int64, most int) ([]thread.News, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]thread.News, error) { return now.News(ctx, after, most) })
}

// LastNews implements [store.News].
func (s *Store) LastNews(ctx context.Context) (int64, error) {
	return ask(ctx, s, nil, func(now store.Store) (int64, error) { return now.LastNews(ctx) })
}

// Untold implements [store.News]. It does not look for a store that nobody has needed
// yet: it is asked at every call of a client.
func (s *Store) Untold(ctx context.Context, key string) ([]thread.News, error) {
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened == nil {
		return nil, nil
	}
	return opened.Untold(ctx, key)
}

// Tell implements [store.News].
func (s *Store) Tell(ctx context.Context, seqs []int64) error {
	return tell(ctx, s, func(now store.Store) error { return now.Tell(ctx, seqs) })
}

// Works implements [store.News].
func (s *Store) Works(ctx context.Context, key string) (bool, error) {
	return ask(ctx, s, nil, func(now store.Store) (bool, error) { return now.Works(ctx, key) })
}

// Heirless implements [store.News].
func (s *Store) Heirless(ctx context.Context, client string) ([]string, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]string, error) { return now.Heirless(ctx, client) })
}

// Inherit implements [store.News].
func (s *Store) Inherit(ctx context.Context, from string, to thread.Origin) error {
	return tell(ctx, s, func(now store.Store) error { return now.Inherit(ctx, from, to) })
}

// NoteBudget implements [store.Notices].
func (s *Store) NoteBudget(ctx context.Context, id thread.ID, at time.Time) (bool, error) {
	return ask(ctx, s, thread.ErrNotFound, func(now store.Store) (bool, error) { return now.NoteBudget(ctx, id, at) })
}

// DueNotices implements [store.Notices].
func (s *Store) DueNotices(ctx context.Context, q store.NoticeQuery) ([]store.Notice, error) {
	return ask(ctx, s, nil, func(now store.Store) ([]store.Notice, error) { return now.DueNotices(ctx, q) })
}

// ClaimNotice implements [store.Notices].
func (s *Store) ClaimNotice(ctx context.Context, seq int64) error {
	return tell(ctx, s, func(now store.Store) error { return now.ClaimNotice(ctx, seq) })
}

// EndNotice implements [store.Notices].
func (s *Store) EndNotice(ctx context.Context, seq int64) error {
	return tell(ctx, s, func(now store.Store) error { return now.EndNotice(ctx, seq) })
}
