package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	// overlap is how long before the last look rows are looked at again: the time of a
	// change is taken before its writer waits for the others.
	overlap = 30 * time.Second
	// slack is how many rows more than there are threads alive are known before the
	// others are looked for.
	slack = 1000
)

// tracker counts what becomes of the threads of one project.
type tracker struct {
	*Collector
	project string // label
	rows    Rows
	began   time.Time // nothing before it counts
	cursor  time.Time // rows that were used before are known
	looked  time.Time
	deleted store.DeletionPlace // how far they are counted
	known   map[thread.ID]seen
	again   bool // rows that are new to this look may have been counted, and are not
	pruneAt int

	transcript func(thread.ID) records.Source // nil: they are not read
	unread     []thread.Record                // that have ended
}

// seen is what is known of a thread.
type seen struct {
	cost     thread.Cost
	used     time.Time
	admitted bool
	ended    bool
}

func (t *tracker) look(ctx context.Context) error {
	now := t.opts.Now()
	if now.Before(t.cursor.Add(-overlap)) {
		t.began, t.cursor, t.known, t.again = now, now, map[thread.ID]seen{}, true // the clock was put back
	}
	if err := t.census(ctx, now); err != nil {
		return err
	}
	if err := t.deleted.Read(ctx, t.rows, t.gone); err != nil {
		return err
	}
	if err := t.changed(ctx, now); err != nil {
		return err
	}
	t.looked = now
	t.read(ctx)
	return t.prune(ctx)
}

// changed counts what the rows say that were used since the last look. When it is cut
// short the next one goes on where it was.
func (t *tracker) changed(ctx context.Context, now time.Time) error {
	filter := store.Filter{
		UsedSince: t.cursor.Add(-overlap), Sort: store.Sort{By: store.ByLastUsed, Ascending: true}, Limit: store.MaxPage,
	}
	for {
		rows, next, err := t.rows.List(ctx, filter)
		if err != nil {
			return err
		}
		for _, rec := range rows {
			t.take(rec, filter.UsedSince)
			if rec.LastUsed.After(t.cursor) && !rec.LastUsed.After(now) {
				t.cursor = rec.LastUsed
			}
		}
		if next == "" {
			t.again = false
			return nil
		}
		filter.Cursor = next
	}
}

// take counts what is new of a row, of those that were used since.
func (t *tracker) take(rec thread.Record, since time.Time) {
	was, known := t.known[rec.ThreadID]
	if was.ended || !known && t.isOld(rec, since) {
		return
	}
	now := seen{cost: rec.Cost, used: rec.LastUsed, admitted: !rec.AdmittedAt.IsZero(), ended: rec.Status.Terminal()}
	t.known[rec.ThreadID] = now
	if t.again && !known {
		return
	}
	directive := t.directives.of(rec.Directive)
	switch {
	case known:
		t.spent(rec, directive, was.cost)
	case !rec.CreatedAt.Before(t.began):
		t.families.started.add(1, t.project, string(rec.Kind), directive)
		t.spent(rec, directive, thread.Cost{})
	default: // nobody knows what of its costs is new
	}
	if now.admitted && !was.admitted && !rec.AdmittedAt.Before(t.began) && !rec.QueuedAt.IsZero() {
		t.families.queueTime.observe(rec.AdmittedAt.Sub(rec.QueuedAt).Milliseconds(), 1, t.project)
	}
	if now.ended {
		t.ended(rec, directive)
		t.later(rec)
	}
}

// stateDeleted stands for the state of a thread that was deleted before a look has seen its end.
const stateDeleted = "deleted"

// gone counts a thread that was deleted and of which no look has seen the end, as of one that
// came since the last look. When its files are gone, too, nobody knows any more how it ended
// and what it has used.
func (t *tracker) gone(d store.Deletion) {
	rec, since := d.Record, t.began
	if t.looked.After(since) {
		since = t.looked
	}
	was, known := t.known[rec.ThreadID]
	switch {
	case was.ended, d.At.Before(t.began), !known && (t.again || rec.CreatedAt.Before(since)):
	case d.Open:
		t.take(rec, since)
	default:
		t.known[rec.ThreadID] = seen{cost: was.cost, used: d.At, admitted: true, ended: true}
		directive := t.directives.of(rec.Directive)
		if !known {
			t.families.started.add(1, t.project, string(rec.Kind), directive)
		}
		t.families.ended.add(1, t.project, string(rec.Kind), directive, stateDeleted)
	}
}

// isOld reports whether a thread had ended before the counts began or before the last
// look, which has counted it, or ran elsewhere.
func (t *tracker) isOld(rec thread.Record, since time.Time) bool {
	if !rec.Status.Terminal() {
		return false
	}
	if rec.CompletedAt.Before(t.began) || rec.CompletedAt.Before(since) {
		return true
	}
	var labels map[string]json.RawMessage
	_ = json.Unmarshal(rec.Metadata, &labels) // the store keeps no other
	return labels[thread.MetadataImported] != nil
}

// spent counts what a thread has used since its costs were others.
func (t *tracker) spent(rec thread.Record, directive string, was thread.Cost) {
	now, f := rec.Cost, t.families
	if now == was {
		return
	}
	model := t.models.of(rec.Model)
	f.turns.add(int64(now.Turns-was.Turns), t.project, directive)
	f.spend.add(int64(now.Spend-was.Spend), t.project, directive, model)
	f.tokens.add(now.InputTokens-was.InputTokens, t.project, model, "input")
	f.tokens.add(now.OutputTokens-was.OutputTokens, t.project, model, "output")
	f.tokens.add(now.CacheReadTokens-was.CacheReadTokens, t.project, model, "cache_read")
	f.tokens.add(now.CacheWriteTokens-was.CacheWriteTokens, t.project, model, "cache_write")
}

func (t *tracker) ended(rec thread.Record, directive string) {
	f := t.families
	f.ended.add(1, t.project, string(rec.Kind), directive, string(rec.Status))
	f.duration.observe(rec.CompletedAt.Sub(rec.CreatedAt).Milliseconds(), 1, t.project, string(rec.Status))
	if rec.Outcome != nil && rec.Outcome.Error != nil {
		f.errors.add(1, t.project, t.codes.of(cmp.Or(rec.Outcome.Error.Code, "unknown")))
	}
}

// prune forgets threads that ended long enough ago to be met no more, and those that
// were deleted.
func (t *tracker) prune(ctx context.Context) error {
	maps.DeleteFunc(t.known, func(_ thread.ID, s seen) bool { return s.ended && s.used.Before(t.cursor.Add(-overlap)) })
	if len(t.known) < max(t.pruneAt, slack) {
		return nil
	}
	there, err := t.rows.Known(ctx, slices.Collect(maps.Keys(t.known)))
	if err != nil {
		return err
	}
	maps.DeleteFunc(t.known, func(id thread.ID, _ seen) bool { return !there[id] })
	t.pruneAt = 2 * len(t.known)
	return nil
}

// census sets what is of the moment.
func (t *tracker) census(ctx context.Context, now time.Time) error {
	counts, err := t.rows.Census(ctx)
	if err != nil {
		return err
	}
	stats, err := t.rows.Stats(ctx, store.StatsSince{Used: now, Created: now})
	if err != nil {
		return err
	}
	f := t.families
	f.kept.set(int64(stats.Threads), t.project)
	set := func(state string, n int) { f.threads.set(int64(n), t.project, state) }
	set("starting", counts.Created-counts.Queued)
	set("queued", counts.Queued)
	set("running", counts.Running-counts.Yielded)
	set("waiting", counts.Yielded)
	f.queue.set(int64(counts.Queued), t.project)
	f.queueOldest.set(age(now, counts.QueuedSince), t.project)
	oldest := time.Time{}
	for _, kind := range []thread.QuestionKind{thread.AskLimit, thread.AskRisk, thread.AskHook, thread.AskHandoff} {
		f.questions.set(0, t.project, string(kind))
	}
	for _, q := range counts.Questions {
		f.questions.set(int64(q.Count), t.project, string(q.Kind))
		if oldest.IsZero() || q.Since.Before(oldest) {
			oldest = q.Since
		}
	}
	f.questionOldest.set(age(now, oldest), t.project)
	return nil
}

// age is how long ago something was, in milliseconds; 0 for what was not.
func age(now, since time.Time) int64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Milliseconds())
}
