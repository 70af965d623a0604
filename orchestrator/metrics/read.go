package metrics

import (
	"context"
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// Bounds of what one look reads of transcripts, so that it is quick however many threads have
// ended. The next look reads the rest.
const (
	mostTranscripts = 200
	mostBytes       = 16 << 20
	// largest is the longest transcript that is read.
	largest = 64 << 20
	// mostUnread is how many threads are kept for later; others are left out.
	mostUnread = 10_000
	// mostSpans bounds what is remembered of one while it is read.
	mostSpans = 20_000
)

// later keeps a thread that has ended, of which nobody has read yet what it did.
func (t *tracker) later(rec thread.Record) {
	if rec.Kind == thread.KindSet || t.transcript == nil {
		return
	}
	if len(t.unread) >= mostUnread {
		t.families.skipped.add(1, t.project)
		return
	}
	rec.Outcome, rec.Metadata = nil, nil // which can be long
	t.unread = append(t.unread, rec)
}

// read counts what the threads did that have ended.
func (t *tracker) read(ctx context.Context) {
	bytes := int64(0)
	n := 0
	for _, rec := range t.unread {
		if n == mostTranscripts || bytes >= mostBytes || ctx.Err() != nil {
			break
		}
		n++
		source := t.transcript(rec.ThreadID)
		stamp, err := source.Stamp()
		bytes += stamp.Size
		if err != nil && !errors.Is(err, fs.ErrNotExist) || stamp.Size > largest {
			t.families.skipped.add(1, t.project)
			continue
		}
		b := timeline.New(timeline.FactsOf(rec))
		b.Limit(mostSpans)
		if err := b.Read(transcript.Events(source)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.families.skipped.add(1, t.project)
			continue
		}
		for _, s := range b.Timeline().Spans {
			t.did(s)
		}
	}
	t.unread = t.unread[n:]
	t.families.unread.set(int64(len(t.unread)), t.project)
}

// did counts one thing that a thread did. Several that were made one took the same time
// each.
func (t *tracker) did(s timeline.Span) {
	if s.EndMS == nil {
		return
	}
	f, times, took := t.families, max(1, int64(s.Count)), *s.EndMS-s.StartMS
	if s.Count > 1 {
		took = s.BusyMS / times
	}
	switch s.Kind {
	case timeline.Model:
		model := t.models.of(s.Name)
		if s.Error != "" {
			f.modelErrors.add(times, t.project, model, t.codes.of(s.Detail))
			return
		}
		f.modelTime.observe(took, times, t.project, model)
		if s.FirstMS != nil {
			f.firstPiece.observe(*s.FirstMS, times, t.project, model)
		}
	case timeline.Backoff:
		f.backoff.add(took*times, t.project)
	case timeline.Tool:
		outcome := "ok"
		if s.Error != "" {
			outcome = "error"
		}
		f.toolCalls.add(times, t.project, t.tools.of(s.Name), outcome)
		f.toolTime.observe(took, times, t.project)
	case timeline.Question, timeline.Approval:
		f.questionTime.observe(took, times, t.project)
	default: // the row has told of the others
	}
}
