package view

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

const (
	// maxLanes is how many threads the timeline of a tree shows at most.
	maxLanes = 200
	// treeSpans is how many spans those have together, but for the fewest of a lane.
	treeSpans, laneSpans = 20_000, 100
	// maxTimelines bounds how many timelines are remembered, and keptSpans how many spans
	// those have together: 30 MB.
	maxTimelines, keptSpans = 500, 100_000
)

// Timeline tells what a thread did when. Of a thread that works only what is new is
// read since the last call.
func (v *View) Timeline(ctx context.Context, id thread.ID) (timeline.Timeline, error) {
	rec, err := v.examined(ctx, id)
	if err != nil {
		return timeline.Timeline{}, err
	}
	line, err := v.timelines.of(v.Threads, rec)
	if err != nil {
		return timeline.Timeline{}, threads.Fault(err)
	}
	return line, nil
}

// Timelines tells what a thread and those below it did when, those that continue one of
// them included.
func (v *View) Timelines(ctx context.Context, id thread.ID) (timeline.Tree, error) {
	rec, err := v.examined(ctx, id)
	if err != nil {
		return timeline.Tree{}, err
	}
	below, err := v.Threads.Store.Descendants(ctx, id)
	if err != nil {
		return timeline.Tree{}, threads.Fault(err)
	}
	// The oldest are those that the others are below.
	slices.SortStableFunc(below, func(x, y thread.Record) int { return x.CreatedAt.Compare(y.CreatedAt) })
	shown := append([]thread.Record{rec}, below...)
	shown = shown[:min(len(shown), maxLanes)]
	lanes := make([]timeline.Lane, len(shown))
	for i, rec := range shown {
		if err := ctx.Err(); err != nil {
			return timeline.Tree{}, err
		}
		line, err := v.timelines.of(v.Threads, rec)
		if err != nil {
			return timeline.Tree{}, threads.Fault(err)
		}
		lanes[i] = timeline.Lane{
			Parent: rec.ParentID, Previous: rec.ContinuationOf, Directive: rec.Directive, Name: rec.Name, Model: rec.Model,
			Status: rec.Status, Timeline: line.Within(max(laneSpans, treeSpans/len(shown))),
		}
	}
	tree := timeline.Join(lanes)
	tree.Omitted = 1 + len(below) - len(shown)
	return tree, nil
}

// ThreadSpend is what a thread has spent over time, beside what it may.
type ThreadSpend struct {
	ThreadID thread.ID        `json:"thread_id"`
	Began    time.Time        `json:"began"`
	Ended    *time.Time       `json:"ended,omitempty"` // of the last that is below it; left out while one works
	LengthMS int64            `json:"length_ms"`       // until the last that is known
	Limit    *thread.Micros   `json:"limit,omitempty"` // what it and all below it may cost by now; left out where there is no budget
	Own      []timeline.Point `json:"own"`             // of the thread
	Tree     []timeline.Point `json:"tree"`            // of it and all below it
	Threads  int              `json:"threads"`         // of which the tree consists
	Omitted  int              `json:"omitted,omitempty"`
	// Truncated says that points were left out, because there are too many.
	Truncated bool `json:"truncated,omitempty"`
}

// Spend tells what a thread, and what is below it, has spent over time.
func (v *View) Spend(ctx context.Context, id thread.ID) (ThreadSpend, error) {
	tree, err := v.Timelines(ctx, id)
	if err != nil {
		return ThreadSpend{}, err
	}
	own := tree.Lanes[0]
	for i := range own.Spend {
		own.Spend[i].AtMS += own.OffsetMS
	}
	spend := ThreadSpend{
		ThreadID: id, Began: tree.Began, Ended: tree.Ended, LengthMS: tree.LengthMS, Own: own.Spend, Tree: tree.Spend,
		Threads: len(tree.Lanes) + tree.Omitted, Omitted: tree.Omitted, Truncated: tree.Truncated,
	}
	budget, err := v.Threads.Store.Budget(ctx, id)
	switch {
	case err == nil:
		spend.Limit = &budget.MaxSpend
	case !errors.Is(err, store.ErrNoBudget):
		return ThreadSpend{}, threads.Fault(err)
	}
	return spend, nil
}

// examined is the row of a thread, which is settled when its process is gone.
func (v *View) examined(ctx context.Context, id thread.ID) (thread.Record, error) {
	rec, err := v.Threads.Examine(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		err = v.Threads.NoThread(ctx, id)
	}
	if err != nil {
		return rec, threads.Fault(err)
	}
	return rec, nil
}

// timelines are those that were asked for last. They remember nothing but what the
// transcripts say.
type timelines struct {
	mu    sync.Mutex
	kept  map[thread.ID]*keptTimeline
	uses  int
	spans int // of all that are kept, when they were asked for last
}

type keptTimeline struct {
	used  int // by which of the uses last; of timelines
	spans int // of timelines, too

	mu   sync.Mutex
	feed transcript.Feed
	made *timeline.Builder
}

// of is the timeline of a thread by now.
func (t *timelines) of(from *threads.Threads, rec thread.Record) (timeline.Timeline, error) {
	k := t.at(rec.ThreadID)
	k.mu.Lock()
	defer k.mu.Unlock()
	facts := timeline.FactsOf(rec)
	if k.made == nil {
		k.made = timeline.New(facts)
	}
	err := k.feed.Read(from.Transcript(rec.ThreadID), func() { k.made = timeline.New(facts) }, k.add)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return timeline.Timeline{}, err
	}
	k.made.Know(facts)
	line := k.made.Timeline()
	t.counted(rec.ThreadID, k, len(line.Spans))
	return line, nil
}

// counted notes how many spans one has by now, if it is still kept.
func (t *timelines) counted(id thread.ID, k *keptTimeline, spans int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept[id] == k {
		t.spans += spans - k.spans
		k.spans = spans
	}
}

func (k *keptTimeline) add(e thread.Event, err error) {
	if err != nil {
		k.made.Damaged()
		return
	}
	k.made.Add(e)
}

// at is what is kept of a thread. Those that were asked for longest ago make room.
func (t *timelines) at(id thread.ID) *keptTimeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses++
	k, known := t.kept[id]
	if !known {
		t.makeRoom()
		k = &keptTimeline{}
		t.kept[id] = k
	}
	k.used = t.uses
	return k
}

func (t *timelines) makeRoom() {
	if t.kept == nil {
		t.kept = map[thread.ID]*keptTimeline{}
	}
	for len(t.kept) >= maxTimelines || t.spans > keptSpans {
		var oldest thread.ID
		for id, k := range t.kept {
			if oldest == "" || k.used < t.kept[oldest].used {
				oldest = id
			}
		}
		t.spans -= t.kept[oldest].spans
		delete(t.kept, oldest)
	}
}
