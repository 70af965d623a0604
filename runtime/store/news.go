package store

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// News keeps what has come to pass with threads: that they have ended, and that they
// ask. A row is written with the change that it is about, in one transaction, so that
// no crash comes between. The newest 10 000 are kept. All kinds of change wake the
// receivers of Watcher.Changes.
type News interface {
	// News returns what has come to pass behind a place, oldest first, at most so many.
	News(ctx context.Context, after int64, most int) ([]thread.News, error)
	// LastNews is the place of the newest; 0 where there is none.
	LastNews(ctx context.Context) (int64, error)
	// Untold returns what a client is to be told and has not been: ends of the threads
	// that it has started, and open questions of those and of all below them. It is
	// remembered until somebody commits. A store that is not open yet has none.
	Untold(ctx context.Context, key string) ([]thread.News, error)
	// Tell records that a client has been told of what has come to pass.
	Tell(ctx context.Context, seqs []int64) error
	// Works reports whether threads that a client has started go on.
	Works(ctx context.Context, key string) (bool, error)
	// Heirless returns the keys of clients of a name that have something to be told, or
	// have threads that go on. Whether they are still there is for others to know.
	Heirless(ctx context.Context, client string) (keys []string, err error)
	// Inherit gives what one client has started that goes on, and is to be told, to
	// another.
	Inherit(ctx context.Context, from string, to thread.Origin) error
}

// Notices keeps of which news the person has been notified, each once: whoever is about
// to send a notice claims it first. There is one sender at a time, so that a claim that
// a sender finds is that of one that died: whether that notice was sent nobody knows.
type Notices interface {
	// NoteBudget records that a root and all below it have spent 80 % of its limit. It
	// reports whether that is news.
	NoteBudget(ctx context.Context, id thread.ID, at time.Time) (first bool, err error)
	// DueNotices returns the news of which the person wants to be notified and has not been,
	// oldest first.
	DueNotices(ctx context.Context, q NoticeQuery) ([]Notice, error)
	ClaimNotice(ctx context.Context, seq int64) error
	// EndNotice records that a notice was sent, or never will be.
	EndNotice(ctx context.Context, seq int64) error
}

// NoticeQuery says which notices are asked for.
type NoticeQuery struct {
	After    int64             // their place is behind this one
	Since    time.Time         // earlier events are none
	Kinds    []thread.NewsKind // empty: none
	Children bool              // of threads below others too
	Most     int
}

// Notice is news of which the person may be notified.
type Notice struct {
	thread.News
	Claimed bool // a sender that died was about to send it
}

// Untellable is how much [News.Untold] returns at most.
const Untellable = 1000
