package page

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	// mostPage bounds the payloads of one page, whatever is asked for.
	mostPage = 2 << 20
	// gatherFor is how long what a thread streams is gathered before it is told: a model
	// can send thousands of pieces a second.
	gatherFor = 150 * time.Millisecond
	// lookAgain is how often a followed transcript is looked at although no news of it
	// came: some file systems tell none.
	lookAgain = time.Second
)

// TranscriptPage is a part of a transcript.
type TranscriptPage struct {
	Events  []Event `json:"events"`
	First   int64   `json:"first,omitempty"` // seq of the first event that was looked at: before=first reads on backwards
	Next    int64   `json:"next"`            // after=next reads on
	AtStart bool    `json:"at_start"`
	AtEnd   bool    `json:"at_end"`
	Damaged int     `json:"damaged,omitempty"` // lines that cannot be read
}

// Event is one of a transcript, with its long texts cut.
type Event struct {
	thread.Event
	Cut bool `json:"cut,omitempty"`
}

// transcript answers with a part of what a thread did; as a stream with what it does, too.
func (p *Page) transcript(ctx context.Context, c *call) (any, error) {
	o, err := windowOf(c)
	if err != nil {
		return nil, err
	}
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	if !c.flag("stream") {
		return read(project, rec.ThreadID, o)
	}
	o.Deltas, o.Before = true, 0
	return p.stream(ctx, c, func(ctx context.Context, send func(any) error) error {
		return follow(ctx, project, rec.ThreadID, o, send)
	})
}

// windowOf reads which part is asked for: after a seq, before one, or with tail the last.
func windowOf(c *call) (o transcript.WindowOptions, err error) {
	most, err := c.number("max")
	if err == nil {
		o.After, err = c.number("after")
	}
	if err == nil {
		o.Before, err = c.number("before")
	}
	if err != nil {
		return o, err
	}
	if c.flag("tail") {
		o.Before = -1
	}
	o.MaxBytes = int(min(max(most, 0), mostPage))
	if q := c.query("q"); q != "" {
		if o.Find, err = transcript.NewPattern(q, false); err != nil {
			return o, tool.Faultf(tool.CodeBadArguments, "q: %w", err)
		}
	}
	return o, nil
}

// read reads a page. A thread that has written nothing yet has an empty transcript.
func read(project *Project, id thread.ID, o transcript.WindowOptions) (TranscriptPage, error) {
	w, err := transcript.ReadWindow(project.Control.Threads.Transcript(id), o)
	if errors.Is(err, fs.ErrNotExist) {
		w, err = transcript.Window{Next: o.After, AtStart: true, AtEnd: true}, nil
	}
	if err != nil {
		return TranscriptPage{}, threads.Fault(err)
	}
	page := TranscriptPage{Events: make([]Event, len(w.Events)), First: w.First, Next: w.Next, AtStart: w.AtStart, AtEnd: w.AtEnd, Damaged: w.Damaged}
	for i, e := range w.Events {
		page.Events[i].Event = e
		page.Events[i].Payload, page.Events[i].Cut = shorten(e.Payload)
	}
	return page, nil
}

// follow sends the pages of a transcript as it grows. All that is written while a page is on
// its way, or within gatherFor, is one page.
func follow(ctx context.Context, project *Project, id thread.ID, o transcript.WindowOptions, send func(any) error) error {
	written, unwatch := project.Control.Threads.Transcript(id).Watch()
	defer unwatch()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for first := true; ; first = false {
		page, err := read(project, id, o)
		if err != nil {
			return err
		}
		o.After = page.Next
		if first || len(page.Events) > 0 || page.Damaged > 0 {
			if err := send(page); err != nil {
				return err
			}
		}
		if !page.AtEnd {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		rest.Reset(lookAgain)
		select {
		case <-written:
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		rest.Reset(gatherFor)
		select {
		case <-rest.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// event answers with the whole of one event.
func (p *Page) event(ctx context.Context, c *call) (any, error) {
	seq, err := strconv.ParseInt(c.r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return nil, refuse(http.StatusBadRequest, tool.CodeBadArguments, "%s is no seq of an event", clip(c.r.PathValue("seq")))
	}
	project, rec, err := p.asked(ctx, c)
	if err != nil {
		return nil, err
	}
	e, found, err := transcript.EventAt(project.Control.Threads.Transcript(rec.ThreadID), seq)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, threads.Fault(err)
	}
	if !found {
		return nil, tool.Faultf(tool.CodeNotFound, "thread %s has no event %d", rec.ThreadID, seq)
	}
	return e, nil
}
