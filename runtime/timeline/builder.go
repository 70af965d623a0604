package timeline

import (
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

const (
	// maxText bounds the texts of a span, in bytes.
	maxText = 200
	// maxOpen bounds how many spans go on at the same time; more tools than that do not.
	maxOpen = 1000
	// maxMS is 100 years: no clock and no payload moves a span further.
	maxMS = 100 * 365 * 24 * 60 * 60 * 1000
	// maxBase is in the year 9889, so that JSON can show what is 100 years later.
	maxBase = 250_000_000_000_000
)

// Builder makes a timeline event by event, so that one of a thread that works is
// brought up to date with what is new alone. It holds a bounded number of spans.
type Builder struct {
	facts Facts
	max   int

	base     int64 // Began, Unix milliseconds
	based    bool
	skew     int64 // by which the clock was set back so far
	now      int64 // of the newest event, in milliseconds since base; never goes back
	ready    int64 // of the newest event that is no piece of an answer
	worked   int64 // of the newest event that the thread's own work has left
	first    int64 // of the first event
	firstSeq int64 // its number
	events   int
	seq      int64
	damaged  int

	closed    []Span
	open      map[string]Span
	truncated bool

	points []Point
	spend  thread.Micros
	tokens int64

	judged   judged
	settling bool  // somebody else has opened the transcript, to end it
	end      *Span // how it has ended, as the transcript has it

	saidQueued, saidAdmitted time.Time // by the transcript
}

// New begins the timeline of a thread.
func New(f Facts) *Builder {
	b := &Builder{max: MaxSpans, open: map[string]Span{}}
	b.Know(f)
	return b
}

// Limit bounds the number of spans and of points; it is at least 16.
func (b *Builder) Limit(spans int) { b.max = max(16, spans) }

// Know takes what the row says by now.
func (b *Builder) Know(f Facts) {
	b.facts = f
	if !b.based && !f.Created.IsZero() {
		b.setBase(f.Created)
	}
}

// setBase makes a time the beginning.
func (b *Builder) setBase(at time.Time) { b.base, b.based = bounded(at.UnixMilli(), maxBase), true }

// Damaged counts a line that is no event.
func (b *Builder) Damaged() { b.damaged++ }

// Add takes the next event. One whose number is not above those before is passed over:
// what it tells would count twice.
func (b *Builder) Add(e thread.Event) {
	if e.Seq <= b.seq {
		b.damaged++
		return
	}
	b.seq = e.Seq
	if e.Type == thread.EventThreadResumed { // long after the end
		return
	}
	b.tick(e)
	if !b.take(e) {
		b.damaged++
	}
	if e.Type != thread.EventTokenDelta {
		b.ready = b.now
	}
	if b.end == nil && !b.settling {
		b.worked = b.now
	}
}

// tick brings the time to that of an event. A clock that was set back goes on from
// where it was; an event without a time is at that of the one before.
func (b *Builder) tick(e thread.Event) {
	if !e.Timestamp.IsZero() {
		at := e.Timestamp.UnixMilli()
		if !b.based {
			b.setBase(e.Timestamp)
		}
		if at-b.base+b.skew < b.now {
			b.skew = b.now - (at - b.base)
		}
		b.now = min(at-b.base+b.skew, maxMS)
	}
	if b.events == 0 {
		b.first, b.firstSeq = b.now, e.Seq
	}
	b.events++
}

// take reports whether an event says what its type promises. Those that tell nothing of
// time do.
func (b *Builder) take(e thread.Event) bool {
	switch e.Type {
	case thread.EventCognitionRequest:
		return with(e, func(p transcript.CognitionRequest) { b.request(e.Seq, p) })
	case thread.EventTokenDelta:
		b.piece(e.Seq)
	case thread.EventCognitionOut:
		return with(e, func(p transcript.CognitionOut) { b.answer(e.Seq, p) })
	case thread.EventErrorClassified:
		return with(e, func(p transcript.ErrorClassified) { b.failed(e.Seq, p) })
	case thread.EventRetry:
		return with(e, func(p transcript.Retry) { b.retry(e.Seq, p) })
	case thread.EventMessage:
		b.closeAs(modelKey, "broken off by a message")
	case thread.EventToolCallStart:
		return with(e, func(p transcript.ToolCallStart) { b.call(e.Seq, p) })
	case thread.EventToolCallResult:
		return with(e, func(p transcript.ToolCallResult) { b.result(e.Seq, p) })
	case thread.EventHookFired:
		return with(e, func(p transcript.HookFired) { b.hook(e.Seq, p) })
	case thread.EventChildThreadStarted:
		return with(e, func(p transcript.ChildStarted) { b.child(e.Seq, p) })
	case thread.EventQuestionAsked:
		return with(e, func(p transcript.QuestionAsked) { b.asked(e.Seq, p) })
	case thread.EventQuestionAnswered:
		return with(e, b.told)
	case thread.EventThreadStarted:
		return with(e, b.started)
	case thread.EventThreadCompleted, thread.EventThreadError, thread.EventThreadCancelled, thread.EventThreadHandoff:
		return with(e, func(p transcript.Ended) { b.over(e, p) })
	}
	return true
}

func with[T any](e thread.Event, take func(T)) bool {
	p, err := transcript.Decode[T](e)
	if err != nil {
		return false
	}
	take(p)
	return true
}

// begin opens a span at a time that is not behind the present one.
func (b *Builder) begin(key string, s Span, at int64) {
	if len(b.open) >= maxOpen {
		if _, known := b.open[key]; !known {
			b.truncated = true
			return
		}
	}
	b.finish(key, b.now, "")
	s.StartMS = bounded(at, b.now)
	b.open[key] = b.clean(s)
}

// bounded is a time between 0 and most.
func bounded(at, most int64) int64 { return min(max(0, at), most) }

// finish closes a span, if there is one, at a time that is not behind the present one.
func (b *Builder) finish(key string, at int64, failed string) {
	s, known := b.open[key]
	if !known {
		return
	}
	delete(b.open, key)
	if s.Error == "" {
		s.Error = shown(failed)
	}
	b.add(s, at)
}

// closeAs closes a span now, and says why in its detail.
func (b *Builder) closeAs(key, why string) {
	if s, known := b.open[key]; known {
		s.Detail = why
		b.open[key] = s
		b.finish(key, b.now, "")
	}
}

// add takes a span that has ended.
func (b *Builder) add(s Span, end int64) {
	end = max(s.StartMS, bounded(end, b.now))
	s.EndMS = &end
	if s.FirstMS != nil {
		first := bounded(*s.FirstMS, end-s.StartMS)
		s.FirstMS = &first
	}
	s.SentMS = bounded(s.SentMS, end-s.StartMS)
	b.closed = append(b.closed, b.clean(s))
	if len(b.closed) > b.max {
		b.closed = halved(b.closed)
		b.truncated = true
	}
}

// clean bounds what a payload has brought in.
func (b *Builder) clean(s Span) Span {
	s.Name, s.CallID, s.Detail, s.Error = shown(s.Name), shown(s.CallID), shown(s.Detail), shown(s.Error)
	s.Child = thread.ID(shown(string(s.Child)))
	s.Turn, s.Attempt, s.Bytes = max(0, s.Turn), max(0, s.Attempt), max(0, s.Bytes)
	if s.Attempt == 1 {
		s.Attempt = 0
	}
	return s
}

// shown is a text that is no longer than a span has room for.
func shown(text string) string {
	if len(text) <= maxText {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(item.Begin(text, maxText-len("…")), "") + "…"
}

// used adds to what the thread has used.
func (b *Builder) used(turn int, spend thread.Micros, tokens int64) {
	if spend <= 0 && tokens <= 0 {
		return
	}
	b.spend, b.tokens = b.spend.Plus(max(0, spend)), thread.Sum(b.tokens, max(0, tokens))
	b.point(turn)
}

func (b *Builder) point(turn int) {
	b.points = append(b.points, Point{AtMS: b.now, Turn: max(0, turn), Spend: b.spend, Tokens: b.tokens})
	if len(b.points) > b.max {
		b.points = thinned(b.points)
		b.truncated = true
	}
}
