package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Lane is the timeline of one thread of a tree.
type Lane struct {
	Parent    thread.ID    `json:"parent,omitempty"`    // whose lane is in the tree
	Previous  thread.ID    `json:"continues,omitempty"` // the thread that it continues
	Depth     int          `json:"depth"`               // of the tree's root: 0
	Directive string       `json:"directive,omitempty"`
	Name      string       `json:"name,omitempty"`  // for people
	Model     string       `json:"model,omitempty"` // "provider/model"
	Status    thread.State `json:"status"`
	OffsetMS  int64        `json:"offset_ms"` // from the beginning of the tree to its own
	Timeline
}

// Tree are the timelines of a thread and of those below it, on one axis.
type Tree struct {
	ThreadID  thread.ID  `json:"thread_id"`
	Began     time.Time  `json:"began"`
	Ended     *time.Time `json:"ended,omitempty"` // left out while one of them has not
	LengthMS  int64      `json:"length_ms"`       // until the last that is known of any
	Lanes     []Lane     `json:"timelines"`       // a child behind its parent, by their beginnings
	Spend     []Point    `json:"spend"`           // of all together
	Truncated bool       `json:"truncated,omitempty"`
	// Omitted is how many threads below are not there, because there are too many.
	Omitted int `json:"omitted,omitempty"`
}

// Join puts the timelines of a thread and of those below it together. The first lane is
// that of the thread. Nothing of a lane is left out; of the points of spend at most
// MaxSpans stay.
func Join(lanes []Lane) Tree {
	if len(lanes) == 0 {
		return Tree{Lanes: []Lane{}, Spend: []Point{}}
	}
	t := Tree{ThreadID: lanes[0].ThreadID, Began: lanes[0].Began, Lanes: ordered(lanes)}
	for _, l := range t.Lanes {
		if l.Began.Before(t.Began) && !l.Began.IsZero() {
			t.Began = l.Began
		}
	}
	over := true
	for i := range t.Lanes {
		l := &t.Lanes[i]
		if !l.Began.IsZero() {
			l.OffsetMS = bounded(l.Began.UnixMilli()-t.Began.UnixMilli(), maxMS)
		}
		t.LengthMS = max(t.LengthMS, l.OffsetMS+l.LengthMS)
		t.Truncated = t.Truncated || l.Truncated
		over = over && l.Ended != nil
	}
	if over {
		ended := t.Began.Add(time.Duration(t.LengthMS) * time.Millisecond)
		t.Ended = &ended
	}
	t.Spend = together(t.Lanes)
	return t
}

// ordered puts each thread behind the one above it, or the one that it continues, and
// says how deep it is. Threads of which none of those is there are behind the first.
func ordered(lanes []Lane) []Lane {
	known := map[thread.ID]bool{}
	for _, l := range lanes {
		known[l.ThreadID] = true
	}
	root := lanes[0].ThreadID
	below := map[thread.ID][]Lane{}
	for _, l := range lanes[1:] {
		above := cmp.Or(l.Previous, l.Parent)
		if !known[above] || above == l.ThreadID {
			above = root
		}
		below[above] = append(below[above], l)
	}
	for _, list := range below {
		slices.SortStableFunc(list, func(x, y Lane) int {
			return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.ThreadID, y.ThreadID))
		})
	}
	var out []Lane
	var walk func(l Lane, depth int)
	walk = func(l Lane, depth int) {
		l.Depth = depth
		out = append(out, l)
		next := below[l.ThreadID]
		delete(below, l.ThreadID)
		for _, c := range next {
			deeper := depth + 1
			if c.Previous != "" { // the same task
				deeper = depth
			}
			walk(c, deeper)
		}
	}
	walk(lanes[0], 0)
	for _, l := range lanes { // in a circle, which nobody but a damaged registry has
		if list, left := below[l.ThreadID]; left {
			delete(below, l.ThreadID)
			for _, c := range list {
				walk(c, 1)
			}
		}
	}
	return out
}

// together is the spend of all lanes over time.
func together(lanes []Lane) []Point {
	type step struct {
		at     int64
		lane   int
		spend  thread.Micros
		tokens int64
	}
	var steps []step
	for i, l := range lanes {
		for _, p := range l.Spend {
			steps = append(steps, step{l.OffsetMS + p.AtMS, i, p.Spend, p.Tokens})
		}
	}
	slices.SortStableFunc(steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })
	spend, tokens := make([]thread.Micros, len(lanes)), make([]int64, len(lanes))
	sum := Point{}
	points := make([]Point, 0, len(steps))
	for _, s := range steps {
		sum.AtMS = s.at
		sum.Spend = sum.Spend.Plus(s.spend - spend[s.lane])
		sum.Tokens = thread.Sum(sum.Tokens, s.tokens-tokens[s.lane])
		spend[s.lane], tokens[s.lane] = s.spend, s.tokens
		points = append(points, sum)
	}
	for len(points) > MaxSpans {
		points = thinned(points)
	}
	return points
}
