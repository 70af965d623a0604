package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Board is how all threads of a project stand at one look.
type Board struct {
	At      time.Time  `json:"at"`
	Working int        `json:"working"` // threads that have not ended
	Asking  int        `json:"asking"`  // of those that are shown
	Queued  int        `json:"queued"`  // of those that are shown
	Threads []BoardRow `json:"threads"` // that have not ended, newest first
	Ended   []BoardRow `json:"ended"`   // those that have ended last, the last first
	Omitted int        `json:"omitted,omitempty"`
}

// BoardRow is one thread of a board.
type BoardRow struct {
	ThreadID  thread.ID     `json:"thread_id"`
	Status    thread.State  `json:"status"`
	Asks      bool          `json:"asks,omitempty"`
	Queued    bool          `json:"queued,omitempty"`
	Unread    int           `json:"unread_messages,omitempty"`
	Directive string        `json:"directive"`
	Name      string        `json:"name,omitempty"`
	ParentID  thread.ID     `json:"parent_id,omitempty"`
	Continues thread.ID     `json:"continuation_of,omitempty"`
	Turns     int           `json:"turns"`
	Spend     thread.Micros `json:"spend"`
	CreatedAt time.Time     `json:"created_at"`
	UpdatedAt time.Time     `json:"updated_at"`
}

// Board returns the threads that have not ended, and those that have ended last; at
// most so many of each.
func (v *View) Board(ctx context.Context, working, ended int) (Board, error) {
	list, err := v.List(ctx, ListRequest{States: []thread.State{thread.Created, thread.Running}, Limit: working})
	if err != nil {
		return Board{}, err
	}
	b := Board{At: v.Threads.Now().UTC(), Working: list.Count, Threads: make([]BoardRow, 0, list.Count), Ended: []BoardRow{}}
	for _, s := range list.Threads {
		b.Threads = append(b.Threads, boardRow(s))
		if s.Asks {
			b.Asking++
		}
		if s.Queued {
			b.Queued++
		}
	}
	if list.NextCursor != "" {
		if b.Working, err = v.countWorking(ctx); err != nil {
			return Board{}, threads.Fault(err)
		}
	}
	b.Omitted = b.Working - len(b.Threads)
	rows, err := v.lastEnded(ctx, ended)
	if err != nil {
		return Board{}, threads.Fault(err)
	}
	for _, rec := range rows {
		b.Ended = append(b.Ended, boardRow(summary(rec)))
	}
	return b, nil
}

func boardRow(s Summary) BoardRow {
	return BoardRow{
		ThreadID: s.ThreadID, Status: s.Status, Asks: s.Asks, Queued: s.Queued, Unread: s.Unread, Directive: s.Directive, Name: s.Name, ParentID: s.ParentID,
		Continues: s.ContinuationOf, Turns: s.Cost.Turns, Spend: s.Cost.Spend, CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
}

func (v *View) countWorking(ctx context.Context) (n int, err error) {
	sets := map[thread.ID]bool{}
	entries := map[thread.ID]int{} // by parent
	err = store.EachRow(ctx, v.Threads.Store, []thread.State{thread.Created, thread.Running}, func(rec thread.Record) error {
		n++
		entries[rec.ParentID]++
		sets[rec.ThreadID] = rec.Kind == thread.KindSet
		return nil
	})
	for parent, below := range entries {
		if sets[parent] {
			n -= below
		}
	}
	return n, err
}

// lastEnded are the threads that have ended last, as the news say it; behind them those
// that were created last, for what ended before there were news.
func (v *View) lastEnded(ctx context.Context, most int) (rows []thread.Record, err error) {
	last, err := v.Threads.Store.LastNews(ctx)
	if err != nil {
		return nil, err
	}
	among := 4 * most // questions are news too
	news, err := v.Threads.Store.News(ctx, max(0, last-int64(among)), among)
	if err != nil {
		return nil, err
	}
	seen := map[thread.ID]bool{}
	add := func(rec thread.Record) {
		if len(rows) < most && !seen[rec.ThreadID] && rec.Status.Terminal() {
			seen[rec.ThreadID], rows = true, append(rows, rec)
		}
	}
	for _, n := range slices.Backward(news) {
		if n.Kind != thread.Ended || seen[n.ThreadID] {
			continue
		}
		rec, err := v.Threads.Store.Get(ctx, n.ThreadID)
		if errors.Is(err, thread.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if entry, err := v.isEntry(ctx, rec); entry || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		add(rec)
	}
	if len(rows) == most {
		return rows, nil
	}
	older, _, err := v.Threads.Store.List(ctx, store.Filter{States: thread.EndStates(), Limit: most, WithoutEntries: true})
	for _, rec := range older {
		add(rec)
	}
	return rows, err
}

// isEntry reports whether a thread was started for an item of a set, which stands for it.
func (v *View) isEntry(ctx context.Context, rec thread.Record) (bool, error) {
	if rec.ParentID == "" {
		return false, nil
	}
	parent, err := v.Threads.Store.Get(ctx, rec.ParentID)
	if errors.Is(err, thread.ErrNotFound) {
		return false, nil
	}
	return parent.Kind == thread.KindSet, err
}
