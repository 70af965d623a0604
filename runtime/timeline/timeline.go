// Package timeline says what a thread did when: it turns the row of a thread and the
// events of its transcript into spans of time. It is pure: it reads no clock and no file.
//
// Of any transcript, damaged and hostile ones too, the spans are in the order
// of their beginnings, none ends before it begins, and there is a bounded number of them.
package timeline

import (
	"errors"
	"iter"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// MaxSpans is how many spans, and how many points of spend, a timeline has at most
// when nothing else is asked for.
const MaxSpans = 4000

// Kind says what a thread does in a span.
type Kind string

// The kinds of span.
const (
	Queue    Kind = "queue"    // it is ready and has no slot
	Start    Kind = "start"    // before its queue, see Prepare; from its slot to the first event of its process
	Model    Kind = "model"    // a call of the model
	Backoff  Kind = "backoff"  // before a failed call is repeated
	Tool     Kind = "tool"     // a call of a tool; those of one turn overlap
	Hook     Kind = "hook"     // a hook and its actions
	Wait     Kind = "wait"     // for a child; within the call or the hook that has started it
	Question Kind = "question" // for somebody's decision
	Approval Kind = "approval" // for somebody's decision about a handoff
	End      Kind = "end"      // from its last event to its outcome in the registry
)

// Prepare is the name of the Start by whoever has started the thread: what can be
// refused, its row and its files. That of its process has no name.
const Prepare = "prepare"

// Facts are what the row of a thread says; times that are zero are not known, or not yet.
type Facts struct {
	ThreadID  thread.ID
	Kind      thread.Kind
	Directive string // or the tool
	State     thread.State
	Problem   string // why it did not complete

	Created, Queued, Admitted, Ended time.Time
}

// FactsOf are those of a row.
func FactsOf(r thread.Record) Facts {
	f := Facts{
		ThreadID: r.ThreadID, Kind: r.Kind, Directive: r.Directive, State: r.Status,
		Created: r.CreatedAt, Queued: r.QueuedAt, Admitted: r.AdmittedAt, Ended: r.CompletedAt,
	}
	if r.Outcome != nil && r.Outcome.Error != nil {
		f.Problem = r.Outcome.Error.Message
	}
	return f
}

// Timeline is what a thread did when. All its milliseconds count from Began.
type Timeline struct {
	ThreadID thread.ID  `json:"thread_id"`
	Began    time.Time  `json:"began"`           // when it was created
	Ended    *time.Time `json:"ended,omitempty"` // left out while it has not
	LengthMS int64      `json:"length_ms"`       // until the last that is known
	Spans    []Span     `json:"spans"`           // by their beginnings
	Spend    []Point    `json:"spend"`           // by time
	// Truncated says that spans next to each other were made one (see Span.Count), or
	// points were left out, because there are too many.
	Truncated bool `json:"truncated,omitempty"`
	// Damaged is how many lines of the transcript could not be read or come a second time.
	Damaged int `json:"damaged,omitempty"`
}

// Span is a stretch of time in which a thread does one thing.
type Span struct {
	Kind    Kind      `json:"kind"`
	Seq     int64     `json:"seq,omitempty"` // of the event that tells of it first, of a Start the one that ends it; 0: the row does
	StartMS int64     `json:"start_ms"`
	EndMS   *int64    `json:"end_ms,omitempty"` // left out while it goes on
	Turn    int       `json:"turn,omitempty"`
	Name    string    `json:"name,omitempty"` // model, tool, hook, directive of a child, code of a question, state at the end; Prepare
	CallID  string    `json:"call_id,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	Error   string    `json:"error,omitempty"`
	Child   thread.ID `json:"child,omitempty"` // that was started, or is waited for

	// Of the model's calls.
	Attempt int           `json:"attempt,omitempty"`  // failures in a row before it, plus 1; left out when it is the first
	FirstMS *int64        `json:"first_ms,omitempty"` // from StartMS to the first piece of the answer
	SentMS  int64         `json:"sent_ms,omitempty"`  // from StartMS until the whole request had left
	Bytes   int64         `json:"bytes,omitempty"`    // of the request
	Tokens  *Tokens       `json:"tokens,omitempty"`
	Spend   thread.Micros `json:"spend,omitempty"` // of tools and hooks too

	// Of several spans that were made one.
	Count  int   `json:"count,omitempty"`   // how many; left out when it is one
	BusyMS int64 `json:"busy_ms,omitempty"` // how long they took together
}

// Tokens are those of calls of the model.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Point is how much a thread has used by a time, without what is below it.
type Point struct {
	AtMS   int64         `json:"ms"`
	Turn   int           `json:"turn,omitempty"`
	Spend  thread.Micros `json:"spend"`
	Tokens int64         `json:"tokens"` // of all kinds together
}

// Read adds events until they end or cannot be read any more. Damaged lines are counted
// and passed over. A missing transcript has no events: the iterator's error wraps
// fs.ErrNotExist then, and the timeline is that of the row.
func (b *Builder) Read(events iter.Seq2[thread.Event, error]) error {
	for e, err := range events {
		line, torn := new(transcript.LineError), new(transcript.TornError)
		switch {
		case err == nil:
			b.Add(e)
		case errors.As(err, &line):
			b.Damaged()
		case errors.As(err, &torn): // it is being written
		default:
			return err
		}
	}
	return nil
}
