// Package health tells how the threads of a project are, and where registry, ledger and
// folders disagree.
package health

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// defaultActiveDays is the window of thread_health when none is asked for.
const defaultActiveDays = 7

// StuckAfter is how long a thread at work may record nothing. A turn is recorded
// when its model call and its tools are over; the longest of those take minutes,
// and a clock that jumps an hour forward must not look like a thread that hangs.
const StuckAfter = 2 * time.Hour

// manyThreads is how many threads, and how many folders, a look goes through that is
// not asked for all of them. To read a thread.json and check its signature takes a
// fifth of a millisecond.
const manyThreads = 1000

// Looked tells how far a look at all threads is.
type Looked struct {
	Done  int
	Total int // as far as it is known
}

// Checker looks at all threads of a project.
type Checker struct {
	Threads  *threads.Threads
	Settings *settings.Source
	// GoOn goes on with deletions that were cut short; nil: nobody does.
	GoOn func(context.Context) error
	// Places are measured beside what is of threads: the search index, caches.
	Places []Place
}

// Report tells how the threads of the project are. Dead ones are settled, as by
// every look; beside that nothing is changed. Its cost does not grow with the
// number of threads that have ended, unless all is asked for; progress, which may be
// nil, is told then how many folders were gone through.
func (c *Checker) Report(ctx context.Context, req Request, progress func(Looked)) (Report, error) {
	if req.ActiveDays <= 0 {
		req.ActiveDays = defaultActiveDays
	}
	h := Report{Success: true, ActiveDays: req.ActiveDays, MaxRunning: c.Settings.Begin().Slots(), Stuck: []thread.ID{}}
	if err := c.count(ctx, &h, req.All, progress); err != nil {
		return Report{}, threads.Fault(err)
	}
	switch {
	case len(h.Stuck) > 0:
		h.Next = "read_transcript of a stuck thread shows what it does; cancel_thread stops it"
	case h.OrphanedFolders > 0:
		h.Next = "reconcile_threads names the folders without a row; with apply it makes their rows again"
	case h.Partial:
		h.Next = "thread_health with all goes through every folder"
	}
	return h, nil
}

func (c *Checker) count(ctx context.Context, h *Report, all bool, progress func(Looked)) error {
	if err := c.countRows(ctx, h); err != nil {
		return err
	}
	if err := c.countAlive(ctx, h); err != nil {
		return err
	}
	measured := sizes{}
	if err := c.countFolders(ctx, h, measured, all, progress); err != nil {
		return err
	}
	if err := c.countSizes(ctx, h, measured, all); err != nil {
		return err
	}
	h.grow(measured)
	h.advise(measured)
	return nil
}

func (c *Checker) countRows(ctx context.Context, h *Report) error {
	now := c.Threads.Now().UTC()
	st, err := c.Threads.Store.Stats(ctx, store.StatsSince{
		Used: now.AddDate(0, 0, -h.ActiveDays), Created: now.Truncate(24 * time.Hour),
	})
	if err != nil {
		return err
	}
	h.ThreadCount, h.ActiveThreads, h.InactiveThreads = st.Threads, st.Active, st.Threads-st.Active
	h.AvgTokenCount, h.MaxTokenCount, h.SpendToday = st.AvgTokens, st.MaxTokens, st.Spend
	return nil
}

// countAlive looks at every thread that has not ended.
func (c *Checker) countAlive(ctx context.Context, h *Report) error {
	active := []thread.State{thread.Created, thread.Running}
	return store.EachRow(ctx, c.Threads.Store, active, func(rec thread.Record) error {
		now, err := c.Threads.Sweeper.Examine(ctx, rec)
		switch {
		case thread.WasDeleted(err, rec.ThreadID):
		case err != nil:
			c.Threads.Log.Error().Err(err).Str("thread_id", string(rec.ThreadID)).Msg("could not settle a thread whose process is gone")
		case now.Queued():
			h.Queued++
		case !now.Status.Terminal():
			h.Running++
			if !now.Yielded && c.Threads.Now().Sub(now.UpdatedAt) > StuckAfter {
				h.Stuck = append(h.Stuck, now.ThreadID)
			}
		}
		return nil
	})
}

// countFolders counts what only the folders tell.
func (c *Checker) countFolders(ctx context.Context, h *Report, measured sizes, all bool, progress func(Looked)) error {
	strays := c.strays(func(context.Context, records.Found) { h.OrphanedFolders++ })
	complete, err := c.Threads.Records.Walk(mostFolders(all), func(f records.Found) error {
		h.Folders++
		if f.HasMeta && !f.Linked {
			// Code that relies on a thread.json checks its signature; a count need not.
			if meta, err := c.Threads.Records.Of(f.ID).Meta().Peek(); err == nil && meta.Transcript != nil {
				h.CheckpointCount += meta.Transcript.Checkpoints
			}
		}
		if !f.Linked {
			if err := measured.ofThread(c.Threads.Records.Of(f.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err // else it was deleted just now
			}
		}
		tell(progress, h.Folders, h.ThreadCount)
		return strays.add(ctx, f)
	})
	if err != nil {
		return err
	}
	h.Partial = !complete
	return strays.flush(ctx)
}

// mostFolders is how many folders a look goes through.
func mostFolders(all bool) int {
	if all {
		return math.MaxInt
	}
	return manyThreads
}

// tell reports how far a look is, to who listens.
func tell(progress func(Looked), done, total int) {
	if progress != nil {
		progress(Looked{Done: done, Total: max(done, total)})
	}
}

// strays finds the folders that no row knows, asking for many of them at once.
type strays struct {
	c     *Checker
	batch []records.Found
	found func(context.Context, records.Found)
}

func (c *Checker) strays(found func(context.Context, records.Found)) *strays {
	return &strays{c: c, found: found}
}

// add looks at a folder, now or later.
func (s *strays) add(ctx context.Context, f records.Found) error {
	if s.batch = append(s.batch, f); len(s.batch) < store.MaxPage {
		return context.Cause(ctx)
	}
	return s.flush(ctx)
}

// flush looks at those that were added and not looked at.
func (s *strays) flush(ctx context.Context) error {
	ids := make([]thread.ID, len(s.batch))
	for i, f := range s.batch {
		ids[i] = f.ID
	}
	known, err := s.c.Threads.Store.Known(ctx, ids)
	if err != nil {
		return err
	}
	for _, f := range s.batch {
		if !known[f.ID] && !s.c.justMade(f.ID) {
			s.found(ctx, f)
		}
	}
	s.batch = s.batch[:0]
	return context.Cause(ctx)
}

// grace protects what is being made: a folder exists before its row does.
const grace = 5 * time.Minute

// justMade reports whether somebody may be about to make a thread.
func (c *Checker) justMade(id thread.ID) bool {
	at, err := c.Threads.Records.Of(id).Touched()
	return err == nil && c.recent(at)
}

// recent reports whether something happened within the grace, or, by a clock
// that has jumped, has yet to happen.
func (c *Checker) recent(at time.Time) bool { return c.Threads.Now().Sub(at) < grace }
