package costs

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// exactly reads the transcripts of the threads that have worked in the time.
func (c *Costs) exactly(ctx context.Context, a *account) error {
	filter := store.Filter{UsedSince: a.since, Sort: store.Sort{By: store.ByLastUsed}, Limit: store.MaxPage}
	for read := 0; ; {
		rows, next, err := c.Threads.Store.List(ctx, filter)
		if err != nil {
			return threads.Fault(err)
		}
		for _, rec := range rows {
			if rec.Kind == thread.KindSet || thread.IsImported(rec.Metadata) || !rec.CreatedAt.Before(a.until) {
				continue
			}
			if read++; read > maxExact {
				return tool.Faultf(tool.CodeUnsupported, "more than %d threads have worked in that time, and all their transcripts would have to be read", maxExact).
					WithHint("ask for a shorter time, or for what the rows say, without exact")
			}
			if err := c.read(ctx, a, rec); err != nil {
				return err
			}
		}
		if filter.Cursor = next; next == "" {
			return nil
		}
	}
}

// read counts what one thread has used, as its transcript tells it. Use that the
// transcript does not tell counts at the start of the thread.
func (c *Costs) read(ctx context.Context, a *account, rec thread.Record) error {
	r := &reader{account: a, rec: rec, model: rec.Model, rest: rec.Cost}
	for e, err := range transcript.Events(c.Threads.Transcript(rec.ThreadID)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, torn := new(transcript.LineError), new(transcript.TornError)
		switch {
		case err == nil:
			r.event(e)
		case errors.Is(err, fs.ErrNotExist), errors.As(err, &line), errors.As(err, &torn): // the row has the sum
		default:
			return threads.Fault(err)
		}
	}
	r.end()
	return nil
}

// reader counts one thread.
type reader struct {
	*account
	rec    thread.Record
	model  string      // that was asked last
	rest   thread.Cost // of the row, that was not told of yet
	failed struct {    // the answer that was put on record as a failure just before
		turn int
		cost thread.Cost
	}
	seen bool // the thread has been counted
}

func (r *reader) event(e thread.Event) {
	switch e.Type {
	case thread.EventCognitionRequest:
		if p, err := transcript.Decode[transcript.CognitionRequest](e); err == nil && p.Model != "" {
			r.model = p.Model
		}
	case thread.EventCognitionOut:
		if p, err := transcript.Decode[transcript.CognitionOut](e); err == nil {
			r.answer(e.Timestamp, p)
		}
	case thread.EventErrorClassified:
		if p, err := transcript.Decode[transcript.ErrorClassified](e); err == nil && p.Attempt > 0 {
			cost := thread.Cost{InputTokens: p.Tokens, Spend: p.Spend}
			r.used(e.Timestamp, cost)
			r.failed.turn, r.failed.cost = p.Turn, cost
		}
	case thread.EventToolCallResult:
		if p, err := transcript.Decode[transcript.ToolCallResult](e); err == nil {
			r.used(e.Timestamp, thread.Cost{Spend: p.Spend})
		}
	case thread.EventHookFired:
		if p, err := transcript.Decode[transcript.HookFired](e); err == nil {
			r.used(e.Timestamp, thread.Cost{Spend: p.Spend})
		}
	}
}

// answer counts an answer, without what was counted of it as a failure.
func (r *reader) answer(at time.Time, p transcript.CognitionOut) {
	u := p.Usage
	cost := thread.Cost{
		Turns: 1, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens, Spend: p.Spend,
	}
	if r.failed.turn == p.Turn && r.failed.cost.Spend == p.Spend && p.Spend > 0 {
		cost = thread.Cost{Turns: 1}
	}
	r.failed.turn = 0
	r.used(at, cost)
}

// used counts what was used at a time, and never more than the row has.
func (r *reader) used(at time.Time, c thread.Cost) {
	c = thread.Cost{
		Turns: min(c.Turns, r.rest.Turns), InputTokens: within(c.InputTokens, r.rest.InputTokens), OutputTokens: within(c.OutputTokens, r.rest.OutputTokens),
		CacheReadTokens: within(c.CacheReadTokens, r.rest.CacheReadTokens), CacheWriteTokens: within(c.CacheWriteTokens, r.rest.CacheWriteTokens),
		Spend: within(c.Spend, r.rest.Spend),
	}
	r.rest = thread.Cost{
		Turns: r.rest.Turns - c.Turns, InputTokens: r.rest.InputTokens - c.InputTokens, OutputTokens: r.rest.OutputTokens - c.OutputTokens,
		CacheReadTokens: r.rest.CacheReadTokens - c.CacheReadTokens, CacheWriteTokens: r.rest.CacheWriteTokens - c.CacheWriteTokens,
		Spend: r.rest.Spend - c.Spend,
	}
	if c != (thread.Cost{}) {
		r.put(at, Use{Cost: c})
	}
}

func within[N int64 | thread.Micros](n, most N) N { return min(max(0, n), most) }

// put counts at a time, if that is asked for.
func (r *reader) put(at time.Time, u Use) {
	if at.Before(r.since) || !at.Before(r.until) {
		return
	}
	if !r.seen {
		r.seen, u.Threads = true, 1
	}
	key := ""
	switch r.by {
	case Directive:
		key = r.rec.Directive
	case Model:
		if key = r.model; key == "" {
			key = NoModel
		}
	case All, Day:
	}
	r.count(key, at, u)
}

// end counts the rest, and how the thread has ended.
func (r *reader) end() {
	r.put(r.rec.CreatedAt, Use{Cost: r.rest})
	switch r.rec.Status {
	case thread.Error:
		r.put(r.rec.CompletedAt, Use{Errors: 1})
	case thread.Cancelled:
		r.put(r.rec.CompletedAt, Use{Cancelled: 1})
	case thread.Created, thread.Running, thread.Completed, thread.Continued:
	}
}
