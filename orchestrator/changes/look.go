package changes

import (
	"context"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// run looks after every wake-up until ctx ends, and tells what has changed since seen.
func (f *Feed) run(ctx context.Context, commits <-chan struct{}, exits *threads.ExitWatcher, seen glance) {
	interval := f.Every
	if interval == 0 {
		interval = every
	}
	paced(ctx, commits, exits.Seen, interval, func(died bool) (done bool) {
		if died {
			if _, err := f.Threads.Sweep(ctx); err != nil && ctx.Err() == nil {
				f.Threads.Log.Error().Err(err).Msg("settle threads whose process is gone")
			}
		}
		now, err := f.look(ctx, seen)
		if err != nil {
			if ctx.Err() == nil {
				f.Threads.Log.Error().Err(err).Msg("look at what has changed of the threads")
			}
			return false
		}
		seen = now
		exits.Watch(now.active)
		tell(f.hearing(ctx, now.topics(f.Threads.Getter(ctx))), false)
		f.endOf(now.gone)
		return true
	})
}

// hearing are those who listen to what has changed. When the last has left meanwhile,
// those that have come since are told by another run.
func (f *Feed) hearing(ctx context.Context, changed map[Topic]bool) []*listener {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	return f.told(func(t Topic) bool { return changed[t] })
}

// paced calls look at once after a wake-up, and not again before an interval is over;
// a wake-up meanwhile has it look then, and so has a look that was not done. It
// returns when ctx ends or commits closes.
func paced(ctx context.Context, commits, exits <-chan struct{}, interval time.Duration, look func(died bool) (done bool)) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	done := true
	for {
		died := false
		if done {
			select {
			case _, open := <-commits:
				if !open {
					return
				}
			case <-exits:
				died = true
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
		select { // this look sees what came during the rest
		case <-commits:
		default:
		}
		done = look(died)
		rest.Reset(interval)
	}
}

// glance is how the threads stood at one look.
type glance struct {
	active  map[thread.ID]thread.Record // those that have not ended
	asking  map[thread.ID]bool
	news    store.Place
	deleted store.DeletionPlace
	gone    []thread.ID // deleted since the look before

	changed map[thread.ID]bool // since the look before; value: it was started, or has ended
}

// maxNews is how many ends one look reads at once.
const maxNews = 1000

// look looks at the threads and compares them with the look before.
func (f *Feed) look(ctx context.Context, before glance) (now glance, err error) {
	now = glance{active: map[thread.ID]thread.Record{}, asking: map[thread.ID]bool{}, changed: map[thread.ID]bool{}, news: before.news, deleted: before.deleted}
	s := f.Threads.Store
	if before.active == nil {
		if now.news, err = store.LatestPlace(ctx, s); err != nil {
			return now, err
		}
		if now.deleted, err = store.LatestDeletion(ctx, s); err != nil {
			return now, err
		}
	} else if err := now.deleted.Read(ctx, s, now.noteDeletion); err != nil {
		return now, err
	} else if err := now.readNews(ctx, s); err != nil {
		return now, err
	}
	open, err := s.Questions(ctx, store.QuestionFilter{Open: true})
	if err != nil {
		return now, err
	}
	for _, q := range open {
		now.asking[q.ThreadID] = true
	}
	err = store.EachRow(ctx, s, []thread.State{thread.Created, thread.Running}, func(rec thread.Record) error {
		rec.Metadata = nil // which may be long
		now.active[rec.ThreadID] = rec
		return nil
	})
	if err != nil {
		return now, err
	}
	now.compare(before)
	return now, nil
}

// readNews notes the threads that have ended: one that was started and has ended
// between two looks is seen here alone.
func (g *glance) readNews(ctx context.Context, s store.News) error {
	for {
		news, more, err := g.news.Read(ctx, s, maxNews)
		if err != nil {
			return err
		}
		for _, n := range news {
			g.news.Pass(n)
			if n.Kind == thread.Ended {
				g.changed[n.ThreadID] = true
			}
		}
		if !more {
			return nil
		}
	}
}

// noteDeletion notes a thread that was deleted.
func (g *glance) noteDeletion(d store.Deletion) {
	g.gone = append(g.gone, d.Record.ThreadID)
	g.changed[d.Record.ThreadID] = true
}

func (g *glance) compare(before glance) {
	for id, rec := range g.active {
		was, known := before.active[id]
		switch {
		case !known:
			g.changed[id] = true
		case !alike(was, rec) || before.asking[id] != g.asking[id]:
			g.changed[id] = g.changed[id] || was.Status != rec.Status
		}
	}
	for id := range before.active {
		if _, still := g.active[id]; !still {
			g.changed[id] = true
		}
	}
}

// alike reports whether two rows of a thread that has not ended tell the same.
func alike(a, b thread.Record) bool {
	return a.Status == b.Status && a.Cost == b.Cost && a.TokenCount == b.TokenCount && a.UpdatedAt.Equal(b.UpdatedAt) &&
		a.CancelRequestedAt.Equal(b.CancelRequestedAt) && a.Queued() == b.Queued() && a.Name == b.Name && a.SpawnCount == b.SpawnCount && a.Unread == b.Unread
}

// topics are what has changed for those who listen.
func (g *glance) topics(get lineage.Get) map[Topic]bool {
	topics := map[Topic]bool{{Aspect: Any}: true}
	for id, stands := range g.changed {
		topics[Topic{Aspect: Board}] = true
		topics[Topic{id, Transcript}] = true
		if stands {
			topics[Topic{Aspect: Set}] = true
		}
		for _, link := range chainOf(id, get) {
			topics[Topic{link, Chain}], topics[Topic{link, Cost}] = true, true
			if stands {
				topics[Topic{link, Result}] = true
			}
		}
		for _, above := range above(id, get) {
			topics[Topic{above, Cost}] = true
		}
	}
	return topics
}

// chainOf are the threads of the chain of a thread, as far as they can be read.
func chainOf(id thread.ID, get lineage.Get) []thread.ID {
	chain, err := lineage.Chain(id, get)
	if err != nil {
		return []thread.ID{id}
	}
	ids := make([]thread.ID, len(chain))
	for i, rec := range chain {
		ids[i] = rec.ThreadID
	}
	return ids
}

// above are the threads above one, and those of their chains.
func above(id thread.ID, get lineage.Get) (ids []thread.ID) {
	seen := map[thread.ID]bool{id: true}
	rec, err := get(id)
	for err == nil && rec.ParentID != "" && !seen[rec.ParentID] {
		seen[rec.ParentID] = true
		ids = append(ids, chainOf(rec.ParentID, get)...)
		rec, err = get(rec.ParentID)
	}
	return ids
}
