package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Rows are the threads of a project.
type Rows interface {
	Get(context.Context, thread.ID) (thread.Record, error)
	List(context.Context, store.Filter) (rows []thread.Record, next string, err error)
}

// Sender sends what is due, in a process of its own.
type Sender struct {
	Settings Settings
	Due      due.Notes // see [NotesIn]
	Rows     Rows
	Records  records.Records
	Place    string // id of the project's place
	Version  string
	// Lease takes the right to send, which one process of the project has at a time, or
	// returns an error wrapping [life.ErrHeld].
	Lease func() (life.Hold, error)
	Now   func() time.Time
	// Wait waits, or returns the cause of the context's end.
	Wait        func(context.Context, time.Duration) error
	Crashpoints thread.Crashpoints
	Log         zerolog.Logger

	client *client
}

// The names of the crash points.
const (
	// BeforeSend: spans are about to be sent.
	BeforeSend thread.Crashpoint = "telemetry.before_send"
	// AfterSend: spans were accepted, and are still noted as due.
	AfterSend thread.Crashpoint = "telemetry.after_send"
)

const (
	// maxDue is how many threads are due at most, and late how long.
	maxDue = 10_000
	late   = 7 * 24 * time.Hour
	// batchSpans and batchBytes are what a request holds at least before it is sent when
	// more is due. A thread's spans are parted when they are more than that.
	batchSpans = 1000
	batchBytes = 2 << 20
	// attempts is how often a request is sent, and firstDelay what is waited behind the
	// first failure; it doubles.
	attempts   = 6
	firstDelay = time.Second
	// mostChildren is how many children of a thread are looked for.
	mostChildren = 2000
)

// NotesIn are the threads of a folder whose spans are due. One that has not ended is passed
// over; after a loss of power spans may be gone with the note.
func NotesIn(dir string) due.Notes { return due.Notes{Dir: dir, Most: maxDue, Late: late} }

// errLeft says that what is due is left for the next sender.
var errLeft = errors.New("what is due is left for the next sender")

// Run sends until nothing is due of threads that have ended, or leaves it to the process
// that sends.
func (s *Sender) Run(ctx context.Context) error {
	s.client = newClient(s.Settings, s.Now)
	err := due.Drain(s.Lease, func() error { return s.drain(ctx) }, func() (bool, error) { return s.isMore(ctx) })
	if errors.Is(err, life.ErrHeld) {
		return nil
	}
	return err
}

// isMore reports whether a thread is due that has ended.
func (s *Sender) isMore(ctx context.Context) (bool, error) {
	notes, _, err := s.Due.List(s.Now())
	if err != nil {
		return false, err
	}
	for _, n := range notes {
		rec, err := s.Rows.Get(ctx, n.ID)
		if errors.Is(err, thread.ErrNotFound) || err == nil && rec.Status.Terminal() {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// drain sends what is due now.
func (s *Sender) drain(ctx context.Context) error {
	notes, dropped, err := s.Due.List(s.Now())
	if err != nil {
		return err
	}
	if dropped > 0 {
		s.Log.Warn().Int("threads", dropped).Msg("traces: nobody has taken them for long, and they are not sent any more")
	}
	var b batch
	for _, n := range notes {
		spans, ended, err := s.spansOf(ctx, n.ID)
		if err != nil {
			return err
		}
		if !ended {
			continue
		}
		if b.add(n.ID, spans); !b.full() {
			continue
		}
		if err := s.flush(ctx, &b); err != nil {
			return err
		}
		b = batch{}
	}
	return s.flush(ctx, &b)
}

// spansOf are the spans of a thread that is due. One that cannot be read is logged, and
// has none: it would be no better the next time.
func (s *Sender) spansOf(ctx context.Context, id thread.ID) (spans []Span, ended bool, err error) {
	rec, err := s.Rows.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return nil, true, nil // it was deleted
	}
	if err != nil || !rec.Status.Terminal() {
		return nil, false, err
	}
	t := Thread{Place: s.Place, Record: rec, Content: s.Settings.Content, Events: transcript.Events(s.Records.Of(id).Transcript())}
	if t.Root, t.Parent, err = s.origin(ctx, rec); err != nil {
		return nil, false, err
	}
	if !s.Settings.sampler.takes(t.trace(), t.Parent) {
		return nil, true, nil
	}
	if t.Children, err = s.children(ctx, id); err != nil {
		return nil, false, err
	}
	spans, err = Spans(t)
	if err != nil {
		s.Log.Warn().Err(err).Str("thread_id", string(id)).Msg("traces: the transcript cannot be read, and the thread is left out")
		return nil, true, nil
	}
	return spans, true, nil
}

// origin is the thread that another one goes back to, and the span that it was started
// in.
func (s *Sender) origin(ctx context.Context, rec thread.Record) (root thread.ID, parent thread.Traceparent, err error) {
	const most = 1000 // rows of a circle
	for range most {
		above := rec.ParentID
		if rec.ContinuationOf != "" {
			if above = rec.ChainRootID; above == "" || above == rec.ThreadID {
				above = rec.ContinuationOf
			}
		}
		if above == "" {
			break
		}
		up, err := s.Rows.Get(ctx, above)
		if errors.Is(err, thread.ErrNotFound) {
			return above, parent, nil // its id is what counts
		}
		if err != nil {
			return "", parent, err
		}
		rec = up
	}
	if meta, err := s.Records.Of(rec.ThreadID).Meta().Peek(); err == nil {
		parent, _ = thread.ParseTraceparent(meta.TraceID)
	}
	return rec.ThreadID, parent, nil
}

func (s *Sender) children(ctx context.Context, id thread.ID) (all []thread.Record, err error) {
	f := store.Filter{ParentID: id, Limit: store.MaxPage}
	for {
		rows, next, err := s.Rows.List(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if next == "" || len(all) >= mostChildren {
			return all, nil
		}
		f.Cursor = next
	}
}

// batch is what one round of requests sends.
type batch struct {
	threads []thread.ID
	spans   []Span
}

func (b *batch) add(id thread.ID, spans []Span) {
	b.threads, b.spans = append(b.threads, id), append(b.spans, spans...)
}

func (b *batch) full() bool { return len(b.spans) >= batchSpans }

// flush sends the spans of a batch and forgets that its threads are due, also of spans that
// will never be taken.
func (s *Sender) flush(ctx context.Context, b *batch) error {
	s.Crashpoints.At(BeforeSend)
	bodies, err := s.bodies(b.spans)
	if err != nil {
		return err
	}
	for _, body := range bodies {
		if err := s.deliver(ctx, body); err != nil {
			return err
		}
	}
	s.Crashpoints.At(AfterSend)
	for _, id := range b.threads {
		if err := s.Due.Done(id); err != nil {
			return err
		}
	}
	if len(b.spans) > 0 {
		s.Log.Info().Int("threads", len(b.threads)).Int("spans", len(b.spans)).Msg("traces sent")
	}
	return nil
}

// bodies are requests with all of some spans, none of them much larger than batchBytes.
func (s *Sender) bodies(spans []Span) (bodies [][]byte, err error) {
	for len(spans) > 0 {
		n := min(len(spans), batchSpans)
		body, err := s.body(spans[:n])
		for err == nil && len(body) > batchBytes && n > 1 {
			n /= 2
			body, err = s.body(spans[:n])
		}
		if err != nil {
			return nil, err
		}
		bodies, spans = append(bodies, body), spans[n:]
	}
	return bodies, nil
}

func (s *Sender) body(spans []Span) ([]byte, error) {
	r := request{[]resourceSpans{{
		Resource:   resource{s.Settings.Resource},
		ScopeSpans: []scopeSpans{{Scope: scope{scopeName, s.Version}, Spans: spans}},
	}}}
	if s.Settings.Binary {
		return r.proto(), nil
	}
	return json.Marshal(r)
}

// deliver sends one request until it is taken or will never be.
func (s *Sender) deliver(ctx context.Context, body []byte) error {
	delay := firstDelay
	for attempt := 1; ; attempt++ {
		a := s.client.send(ctx, body)
		switch a.outcome {
		case accepted:
			if a.rejected > 0 || a.why != "" {
				s.Log.Warn().Int64("rejected_spans", a.rejected).Str("said", a.why).Msg("traces: the endpoint has taken a part of them")
			}
			return nil
		case refused:
			s.Log.Warn().Str("said", a.why).Msg("traces: the endpoint refuses them, and they are not sent any more")
			return nil
		case wrongly:
			return fmt.Errorf("%w: %s", errLeft, a.why)
		case again:
		}
		if attempt == attempts {
			return fmt.Errorf("%w: %d attempts have failed, the last with: %s", errLeft, attempts, a.why)
		}
		if err := s.Wait(ctx, max(a.after, delay)); err != nil {
			return err
		}
		delay *= 2
	}
}
