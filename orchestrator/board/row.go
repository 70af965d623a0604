package board

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// notShownError says that a thread is older than what a board shows.
type notShownError struct{ id thread.ID }

func (e *notShownError) Error() string {
	return fmt.Sprintf("thread %s has ended, and a board shows the %d that were used last; get_status shows it", e.id, MostEnded)
}

// reader makes rows at one look. It reads what lies in files or is long only of the rows
// that it makes.
type reader struct {
	*Keeper
	ctx     context.Context //nolint:containedctx // of one look
	windows map[string]int64
}

func (k *Keeper) reader(ctx context.Context) *reader {
	return &reader{k, ctx, map[string]int64{}}
}

func keysAbove(c *chain) (keys []thread.ID) {
	for up := c.above; up != nil; up = up.above {
		keys = append(keys, up.key())
	}
	return keys
}

// row makes the row of a chain, and says which workspace its newest thread has for itself. The
// row names parts that cannot be read; they hide nothing else.
func (r *reader) row(g *glimpse, c *chain, s stand) (row *Row, in *thread.Workspace) {
	n := s.newest
	row = &Row{
		Key: s.key, ThreadID: n.id, Links: s.links, Parent: s.parent, Kind: n.kind, Directive: clip(n.directive, maxLabel), Name: clip(n.name, maxLabel), Status: n.status,
		Queued: n.queued, Waits: n.waits, Stopping: n.stopping, Model: clip(n.model, maxLabel), Worker: clip(n.worker, maxLabel), Turns: n.cost.Turns, Tokens: n.cost.Tokens(), Spend: n.cost.Spend,
		TreeSpend: s.treeSpend, Budget: s.budget.shown(), Verified: s.verified, Unread: n.unread, CreatedAt: s.spawned.UTC(), UpdatedAt: n.updated.UTC(),
	}
	if s.links > 1 {
		row.ChainCost = &Cost{s.cost.Turns, s.cost.Tokens(), s.cost.Spend}
		for _, link := range c.links[max(0, len(c.links)-maxLinks):] {
			row.Chain = append(row.Chain, link.ThreadID)
		}
	}
	if !n.ended.IsZero() {
		at := n.ended.UTC()
		row.EndedAt = &at
	}
	if !n.retry.IsZero() {
		at := n.retry.UTC()
		row.RetryAt = &at
	}
	if n.kind == thread.KindSet {
		row.Entries = &s.entries
	}
	if q, asks := g.questions[n.id]; asks && s.question != "" {
		row.Asks, row.Question = true, questionOf(q)
	}
	if n.tokens > 0 {
		row.Context = &Context{Used: n.tokens, Window: r.window(n.model)}
	}
	in = r.addFiles(row)
	r.addEnd(row)
	return row, in
}

func (b budget) shown() *Budget {
	if !b.known {
		return nil
	}
	shown := &Budget{Limit: b.most, Spent: b.spent, Reserved: b.reserved.Plus(b.pledged)}
	if b.active {
		shown.Left = max(0, b.most-b.spent-b.reserved-b.pledged)
	}
	return shown
}

// window is the context window of a model.
func (r *reader) window(model string) int64 {
	if r.Window == nil || model == "" {
		return 0
	}
	tokens, known := r.windows[model]
	if !known {
		tokens = r.Window(model)
		r.windows[model] = tokens
	}
	return tokens
}

// addFiles adds what a thread's records tell, and returns the workspace that it has for itself.
func (r *reader) addFiles(row *Row) (in *thread.Workspace) {
	switch meta, err := r.Threads.Described(row.ThreadID); {
	case err == nil:
		limits := meta.Limits
		row.Limits = &limits
		row.warn(meta.Warnings)
		in = meta.Workspace
	case row.Status == thread.Created && isAbsent(err): // it is being started
	default:
		row.damage("thread.json", err)
	}
	if row.Kind == thread.KindSet || row.Status == thread.Created {
		return in
	}
	switch last, err := r.Threads.LastWords(row.ThreadID); {
	case err == nil:
		row.LastWords = lastOf(last.Text, maxWords)
	case row.Kind == thread.KindTool && isAbsent(err), row.Status == thread.Running && isAbsent(err): // nothing was said
	default:
		row.damage("transcript", err)
	}
	return in
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, thread.ErrNoMeta)
}

// addEnd adds how a thread has ended.
func (r *reader) addEnd(row *Row) {
	if !row.Status.Terminal() {
		return
	}
	rec, err := r.Threads.Store.Get(r.ctx, row.ThreadID)
	if err != nil {
		row.damage("outcome", err)
		return
	}
	o := rec.Outcome
	if o == nil {
		return
	}
	row.warn(o.Warnings)
	if o.Error != nil {
		row.Error = &Error{clip(o.Error.Code, maxLabel), clip(o.Error.Message, maxMessage)}
	}
	if o.Changes.Count() > 0 {
		changes := *o.Changes
		changes.Files, changes.Ignored = nil, nil // diff_thread tells them
		row.Changes = &changes
	}
}

func (row *Row) warn(warnings []string) {
	for _, w := range warnings {
		if len(row.Warnings) == maxWarnings {
			return
		}
		row.Warnings = append(row.Warnings, clip(w, maxMessage))
	}
}

func (row *Row) damage(what string, err error) {
	switch {
	case isAbsent(err):
		row.Damaged = append(row.Damaged, what+" is gone")
	default:
		row.Damaged = append(row.Damaged, clip(what+" cannot be used: "+err.Error(), maxMessage))
	}
}

func questionOf(q thread.Question) *Question {
	shown := &Question{
		ID: q.ID, Kind: q.Kind, Code: clip(q.Code, maxLabel), Text: clip(q.Text, maxText), Options: q.Options, Means: map[thread.Decision]string{},
		Default: q.Default, AskedAt: q.AskedAt.UTC(), DeadlineAt: q.DeadlineAt.UTC(),
	}
	for _, d := range q.Options {
		shown.Means[d] = d.Means(q)
	}
	if q.Limits != nil {
		shown.Limits = limit.Set(*q.Limits)
	}
	if q.Most != nil {
		shown.Most = limit.Set(*q.Most)
	}
	if q.Proposal != nil {
		shown.Summary = clip(q.Proposal.Summary, maxText)
	}
	return shown
}

// clip is the beginning of a text, in UTF-8, of at most so many bytes with the mark that
// something is missing.
func clip(text string, most int) string {
	if len(text) <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return item.Clip(text, most-len("…"))
}

// lastOf is the end of a text in one line, likewise.
func lastOf(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= most {
		return text
	}
	return "…" + item.End(text, most-len("…"))
}
