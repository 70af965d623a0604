package timeline

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Timeline is what is known by now. More may be added afterwards.
func (b *Builder) Timeline() Timeline {
	t := Timeline{
		ThreadID: b.facts.ThreadID, Truncated: b.truncated, Damaged: b.damaged,
		Spend: append([]Point{}, b.points...),
	}
	if b.based {
		t.Began = time.UnixMilli(b.base).UTC()
	}
	spans := append(append([]Span{}, b.fromRow()...), b.closed...)
	if b.facts.Ended.IsZero() && b.end == nil {
		for _, s := range b.open {
			spans = append(spans, s)
		}
	} else {
		spans = append(spans, b.ended()...)
		ended := t.Began.Add(time.Duration(b.length()) * time.Millisecond)
		t.Ended = &ended
	}
	slices.SortFunc(spans, byBeginning)
	t.Spans, t.LengthMS = spans, b.length()
	return t.Within(b.max)
}

// Within is the timeline with no more than so many spans, and points of spend. It has
// more when more than that go on at the same time.
func (t Timeline) Within(most int) Timeline {
	for len(t.Spans) > most {
		less := halved(t.Spans)
		if len(less) == len(t.Spans) {
			break
		}
		t.Spans, t.Truncated = less, true
	}
	if len(t.Spend) > most {
		t.Spend, t.Truncated = slices.Clone(t.Spend), true
	}
	for len(t.Spend) > max(1, most) {
		t.Spend = thinned(t.Spend)
	}
	return t
}

// length is until when something is known.
func (b *Builder) length() int64 {
	return max(b.now, b.at(b.queued()), b.at(b.admitted()), b.at(b.facts.Ended))
}

// at is a time of the row.
func (b *Builder) at(t time.Time) int64 {
	if t.IsZero() || !b.based {
		return 0
	}
	return bounded(t.UnixMilli()-b.base, maxMS)
}

// fromRow are the spans that the row tells of: the queue, the start, and all that is
// known of a run without a model.
func (b *Builder) fromRow() []Span {
	queued, admitted := b.queued(), b.admitted()
	if !b.based || b.facts.Created.IsZero() && queued.IsZero() && admitted.IsZero() {
		return nil
	}
	ready := b.at(admitted)
	works, working := b.first, b.events > 0
	if ended := b.facts.Ended; !working && !ended.IsZero() {
		works, working = b.at(ended), true
	}
	over := !b.facts.Ended.IsZero() || b.end != nil
	var spans []Span
	// Both are of one kind, and told apart by the event that ends the second.
	if until := cmp.Or(queued, admitted); b.at(until) > 0 && !b.facts.Created.IsZero() && b.events > 0 {
		spans = append(spans, stretch(Start, Prepare, 0, b.at(until), true))
	}
	if !queued.IsZero() {
		if admitted.IsZero() {
			return append(spans, stretch(Queue, "", b.at(queued), works, working))
		}
		spans = append(spans, stretch(Queue, "", b.at(queued), b.at(admitted), true))
	}
	switch b.facts.Kind {
	case thread.KindSet:
		return append(spans, stretch(Wait, b.facts.Directive, ready, b.length(), over))
	case thread.KindTool:
		return append(spans, stretch(Tool, b.facts.Directive, ready, b.length(), over))
	case thread.KindDirective:
	}
	start := stretch(Start, "", ready, works, working)
	start.Seq = b.firstSeq
	return append(spans, start)
}

// stretch is a span that ends at a time, or goes on.
func stretch(k Kind, name string, start, end int64, over bool) Span {
	s := Span{Kind: k, Name: shown(name), StartMS: start}
	if end = max(start, end); over {
		s.EndMS = &end
	}
	return s
}

func (b *Builder) queued() time.Time {
	if b.facts.Queued.IsZero() {
		return b.saidQueued
	}
	return b.facts.Queued
}

func (b *Builder) admitted() time.Time {
	if b.facts.Admitted.IsZero() {
		return b.saidAdmitted
	}
	return b.facts.Admitted
}

// ended is what remains when the thread has ended: the end itself, and what the
// transcript does not tell the end of.
func (b *Builder) ended() (spans []Span) {
	end := b.end
	if end == nil {
		for _, s := range b.open {
			until := max(s.StartMS, b.now)
			s.EndMS, s.Error = &until, cmp.Or(s.Error, unfinished)
			spans = append(spans, s)
		}
		at := max(b.now, b.at(b.facts.Ended))
		end = &Span{Kind: End, Name: string(b.facts.State), Error: b.facts.Problem, StartMS: at}
	}
	s, until := *end, max(end.StartMS, b.now, b.at(b.facts.Ended))
	s.EndMS = &until
	return append(spans, b.clean(s))
}

func byBeginning(x, y Span) int {
	return cmp.Or(cmp.Compare(x.StartMS, y.StartMS), cmp.Compare(endOf(x), endOf(y)), cmp.Compare(order(x), order(y)), cmp.Compare(rank(x.Kind), rank(y.Kind)))
}

// order is that of the events of spans within one millisecond.
func order(s Span) int64 {
	if s.Kind == End {
		return math.MaxInt64
	}
	return s.Seq
}

// rank is the order of what is at the same time.
func rank(k Kind) int {
	return slices.Index([]Kind{Queue, Start, Question, Approval, Model, Backoff, Tool, Hook, Wait, End}, k)
}

// endOf is when a span has ended; one that goes on ends last.
func endOf(s Span) int64 {
	if s.EndMS == nil {
		return math.MaxInt64
	}
	return *s.EndMS
}

// halved makes one of each two neighbours of a kind that have ended.
func halved(spans []Span) []Span {
	slices.SortStableFunc(spans, byBeginning)
	less := make([]Span, 0, len(spans)/2+16)
	single := map[Kind]int{} // place in less of one that has no neighbour yet
	for _, s := range spans {
		at, waiting := single[s.Kind]
		switch {
		case s.EndMS == nil:
			less = append(less, s)
		case waiting:
			less[at] = joined(less[at], s)
			delete(single, s.Kind)
		default:
			single[s.Kind] = len(less)
			less = append(less, s)
		}
	}
	return less
}

// joined is one span in place of two, the first of which begins first.
func joined(x, y Span) Span {
	end := max(*x.EndMS, *y.EndMS)
	s := Span{
		Kind: x.Kind, Seq: x.Seq, StartMS: x.StartMS, EndMS: &end, Turn: x.Turn, Error: cmp.Or(x.Error, y.Error),
		Spend: x.Spend.Plus(y.Spend), Bytes: thread.Sum(x.Bytes, y.Bytes),
		Count: max(1, x.Count) + max(1, y.Count), BusyMS: thread.Sum(busy(x), busy(y)),
	}
	if x.Name == y.Name {
		s.Name = x.Name
	}
	if x.Tokens != nil || y.Tokens != nil {
		s.Tokens = x.Tokens.plus(y.Tokens)
	}
	return s
}

func busy(s Span) int64 {
	if s.Count > 0 {
		return s.BusyMS
	}
	return *s.EndMS - s.StartMS
}

func (t *Tokens) plus(o *Tokens) *Tokens {
	var x, y Tokens
	if t != nil {
		x = *t
	}
	if o != nil {
		y = *o
	}
	return &Tokens{
		thread.Sum(x.Input, y.Input), thread.Sum(x.Output, y.Output),
		thread.Sum(x.CacheRead, y.CacheRead), thread.Sum(x.CacheWrite, y.CacheWrite),
	}
}

// thinned leaves out every second point, and never the last.
func thinned(points []Point) []Point {
	less := points[:0]
	for i, p := range points {
		if i%2 == 1 || i == len(points)-1 {
			less = append(less, p)
		}
	}
	return less
}
