package tidy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// CleanupRequest asks to delete threads that have ended and are old enough.
type CleanupRequest struct {
	Status    []thread.State // empty: all in which threads have ended
	OlderThan string         // since the last use; see [ParseAge]
	Directive string
	DryRun    bool
	Confirm   bool // as a dry run has shown
	From      thread.ID
	By        string
	// Agreed says that a person has been asked, or does not want to be; Until is then up
	// to when a thread may have been used, as was shown.
	Agreed bool
	Until  time.Time
	// Progress may be nil.
	Progress func(Progress)
}

// Cleaned is the answer to cleanup_threads.
type Cleaned struct {
	Success   bool          `json:"success"`
	DryRun    bool          `json:"dry_run,omitempty" jsonschema:"nothing was deleted"`
	Threads   int           `json:"threads" jsonschema:"that go"`
	ThreadIDs []thread.ID   `json:"thread_ids" jsonschema:"the first of each chain that goes; of many the first"`
	Bytes     int64         `json:"bytes" jsonschema:"of their folders"`
	With      []string      `json:"with,omitempty" jsonschema:"what else goes with them"`
	Spend     thread.Micros `json:"spend" jsonschema:"US dollars; it stays in the sums above and of the day"`
	UsedUntil string        `json:"used_until" jsonschema:"threads that were used later stay"`
	Kept      int           `json:"kept,omitempty" jsonschema:"threads that are old enough and stay: something above, below or in their chain lives or was used since, or speaks against it"`
	Left      int           `json:"left,omitempty" jsonschema:"threads that are old enough and were not looked at: call again"`
	Failed    []string      `json:"failed,omitempty" jsonschema:"what could not be removed, and why"`
	Next      string        `json:"next,omitempty" jsonschema:"what to call next"`

	until time.Time
	with  along
}

// And is what went in this step and in the next one.
func (c Cleaned) And(next Cleaned) Cleaned {
	next.Threads += c.Threads
	next.Bytes += c.Bytes
	next.Spend += c.Spend
	next.with = c.with.and(next.with)
	next.With = next.with.told()
	next.ThreadIDs = slices.Concat(c.ThreadIDs, next.ThreadIDs)
	next.Failed = slices.Concat(c.Failed, next.Failed)
	return next
}

// Until is up to when a thread may have been used that goes.
func (c Cleaned) Until() time.Time { return c.until }

// mostCleaned is how many threads one cleanup deletes, unless what goes together is more.
const mostCleaned = 1000

// Cleanup deletes threads that have ended and were not used for a time, with their chains
// and all below them. A chain is judged by its newest thread; where anything that would
// go with it is younger or lives, or anything above it lives, it stays. A confirm holds
// for the time up to which threads had been used in the dry run: a thread that ends
// or is used later stays. At most 1000 threads go at a time.
func (t *Tidier) Cleanup(ctx context.Context, req CleanupRequest) (Cleaned, error) {
	req.From = cmp.Or(req.From, t.Threads.Parent)
	told, err := t.cleanup(ctx, req)
	if err != nil {
		return told, threads.Fault(err)
	}
	return told, nil
}

func (t *Tidier) cleanup(ctx context.Context, req CleanupRequest) (Cleaned, error) {
	p, err := t.policy(req)
	if err != nil {
		return Cleaned{}, err
	}
	until, agreed, note, err := t.agreedUntil(ctx, req, p.until)
	if err != nil {
		return Cleaned{}, err
	}
	p.until = until
	found, err := t.expired(ctx, p)
	if err != nil {
		return Cleaned{}, err
	}
	t.measure(found.sets)
	told := t.tellFound(ctx, found, p)
	if !agreed {
		told.DryRun, told.Next = true, note+cleanupStep(told)
		return told, nil
	}
	gone, err := t.deleteSets(ctx, found.sets)
	if err != nil {
		return Cleaned{}, err
	}
	if len(gone) < len(found.sets) {
		told = t.tellFound(ctx, found.only(gone), p)
	}
	// The deletion is on record: a caller that goes away does not take it back.
	done, err := t.Continue(context.WithoutCancel(ctx), req.Progress)
	told.Failed = done.Kept
	if err != nil {
		return told, leftover(err)
	}
	if told.Left > 0 {
		told.Next = "cleanup_threads again, with confirm, deletes more"
	}
	return told, nil
}

func cleanupStep(told Cleaned) string {
	if told.Threads == 0 {
		return "nothing to clean up"
	}
	return "cleanup_threads with confirm: true deletes these, for ever"
}

// policy is what a cleanup takes.
type policy struct {
	states    []thread.State
	directive string
	until     time.Time
	from      thread.ID
}

func (t *Tidier) policy(req CleanupRequest) (policy, error) {
	age, err := ParseAge(req.OlderThan)
	if err != nil {
		return policy{}, tool.Faultf(tool.CodeBadArguments, "older_than: %w", err)
	}
	states, err := ParseEnded(req.Status)
	return policy{states: states, directive: req.Directive, until: t.Threads.Now().Add(-age), from: req.From}, err
}

// ParseEnded reads states in which threads have ended, in either case.
func ParseEnded(given []thread.State) (states []thread.State, err error) {
	for _, state := range given {
		state = thread.State(strings.ToLower(string(state)))
		if !state.Terminal() {
			return nil, tool.Faultf(tool.CodeBadArguments, "status %.40q is none in which a thread has ended", state).
				With("valid_status", thread.EndStates())
		}
		states = append(states, state)
	}
	return states, nil
}

// agreedUntil is up to when threads may have been used, and whether somebody has agreed
// to that.
func (t *Tidier) agreedUntil(ctx context.Context, req CleanupRequest, until time.Time) (_ time.Time, agreed bool, note string, err error) {
	key := fmt.Sprintf("cleanup %v %s %s %s %s", req.Status, req.OlderThan, req.Directive, req.From, req.By)
	switch {
	case req.DryRun:
	case req.Agreed && !req.Until.IsZero():
		return req.Until, true, "", nil
	case req.Agreed:
		return until, true, "", nil
	case req.Confirm:
		shown, err := t.Threads.Store.ShownPlan(ctx, key, t.Threads.Now())
		if err != nil {
			return until, false, "", err
		}
		if shown != nil {
			at, err := time.Parse(time.RFC3339Nano, shown.Digest)
			return at, err == nil, "", err
		}
		note = "nothing was deleted: confirm holds for what a dry run has shown, which is this; "
	}
	until = until.UTC().Truncate(time.Millisecond) // as the store keeps it
	return until, false, note, t.Threads.Store.ShowPlan(ctx, key, store.ShownPlan{Digest: until.Format(time.RFC3339Nano), At: t.Threads.Now()})
}

func (t *Tidier) tellFound(ctx context.Context, found expiredSets, p policy) Cleaned {
	told := Cleaned{
		Success: true, ThreadIDs: []thread.ID{}, Kept: found.kept, Left: found.left,
		UsedUntil: p.until.UTC().Format(time.RFC3339), until: p.until, with: t.goesWith(ctx, found.sets...),
	}
	told.With = told.with.told()
	for _, s := range found.sets {
		told.Threads += len(s.members)
		told.Spend += s.spend()
		told.Bytes += s.bytes
		if len(told.ThreadIDs) < mostIDs {
			told.ThreadIDs = append(told.ThreadIDs, s.top)
		}
	}
	return told
}

// deleteSets puts the deletion of sets on record, and returns those. The others stay:
// something came in between.
func (t *Tidier) deleteSets(ctx context.Context, sets []set) (gone []set, err error) {
	for len(sets) > 0 {
		n, threads := 0, 0
		for n < len(sets) && threads < batch {
			threads += len(sets[n].members)
			n++
		}
		lists := make([][]thread.ID, n)
		for i, s := range sets[:n] {
			lists[i] = s.ids()
		}
		refused, err := t.Threads.Store.Delete(ctx, lists, t.Threads.Now())
		if err != nil {
			return gone, err
		}
		for i, why := range refused {
			if why == nil {
				gone = append(gone, sets[i])
			}
		}
		sets = sets[n:]
	}
	t.Threads.Crashpoints.At(CrashIntended)
	return gone, nil
}

// expiredSets are those that a policy takes.
type expiredSets struct {
	sets []set
	kept int // threads that are old enough and stay
	left int // threads that are old enough and were not looked at
}

// only is what goes when some of the sets do.
func (e expiredSets) only(gone []set) expiredSets {
	e.kept += members(e.sets) - members(gone)
	e.sets = gone
	return e
}

// members is how many threads some sets have.
func members(sets []set) (n int) {
	for _, s := range sets {
		n += len(s.members)
	}
	return n
}

// expired finds what a policy takes.
func (t *Tidier) expired(ctx context.Context, p policy) (expiredSets, error) {
	f := finding{Tidier: t, policy: p, of: map[thread.ID]int{}, seen: map[thread.ID]bool{}, above: map[thread.ID]carrier{}}
	var after *thread.Record
	for {
		page, err := t.Threads.Store.Expired(ctx, store.Expiry{States: p.states, Directive: p.directive, UsedUntil: p.until, After: after})
		if err != nil || len(page) == 0 {
			return f.found(), err
		}
		after = &page[len(page)-1]
		if f.threads >= mostCleaned {
			f.left += len(page)
			continue
		}
		if err := f.look(ctx, page); err != nil {
			return expiredSets{}, err
		}
	}
}

// finding looks at threads that are old enough, oldest first.
type finding struct {
	*Tidier
	policy  policy
	sets    []set
	of      map[thread.ID]int  // which set a thread goes with
	seen    map[thread.ID]bool // tops that were looked at
	above   map[thread.ID]carrier
	threads int
	kept    int
	left    int
}

func (f *finding) found() expiredSets {
	sets := slices.DeleteFunc(f.sets, func(s set) bool { return len(s.members) == 0 })
	return expiredSets{sets: sets, kept: f.kept, left: f.left}
}

// look looks at a page of threads. Each stands for its chain.
func (f *finding) look(ctx context.Context, page []thread.Record) error {
	tops := make([]thread.ID, 0, len(page))
	rows := map[thread.ID]int{} // of the page, by top
	for _, rec := range page {
		top := rec.ThreadID
		if rec.ContinuationOf != "" {
			var err error
			if top, err = f.topOf(ctx, rec.ThreadID); err != nil {
				return err
			}
		}
		if rows[top]++; !f.seen[top] {
			f.seen[top] = true
			tops = append(tops, top)
		}
	}
	trees, err := f.Threads.Store.Trees(ctx, tops)
	if err != nil {
		return err
	}
	for _, top := range tops {
		if _, taken := f.of[top]; taken {
			continue // with what it is below of
		}
		s := set{top: top, members: trees[top]}
		switch takes, err := f.takes(ctx, s); {
		case err != nil:
			return err
		case !takes:
			f.kept += rows[top]
		case f.threads >= mostCleaned:
			f.left += rows[top]
		default:
			f.take(s)
		}
	}
	return nil
}

// take adds a set, with those that are in it.
func (f *finding) take(s set) {
	for _, rec := range s.members {
		if i, taken := f.of[rec.ThreadID]; taken {
			f.threads -= len(f.sets[i].members)
			f.sets[i].members = nil
		}
	}
	for _, rec := range s.members {
		f.of[rec.ThreadID] = len(f.sets)
	}
	f.sets = append(f.sets, s)
	f.threads += len(s.members)
}

// takes reports whether a set goes: its chain is judged by the newest thread, and all of
// it has ended and is old enough.
func (f *finding) takes(ctx context.Context, s set) (bool, error) {
	if len(s.members) == 0 || len(s.living()) > 0 {
		return false, nil
	}
	newest := s.newest()
	if len(f.policy.states) > 0 && !slices.Contains(f.policy.states, newest.Status) ||
		f.policy.directive != "" && newest.Directive != f.policy.directive {
		return false, nil
	}
	for _, rec := range s.members {
		if rec.LastUsed.After(f.policy.until) {
			return false, nil
		}
	}
	if above, err := f.livesAbove(ctx, s); above || err != nil {
		return false, err
	}
	if f.policy.from != "" && f.mayDelete(ctx, f.policy.from, s) != nil || f.blocks(ctx, s) != nil {
		return false, nil //nolint:nilerr // threads that may not go stay
	}
	for _, rec := range s.members {
		if held, err := f.Threads.Life.Held(life.Key{Thread: rec.ThreadID}); held || err != nil {
			return false, err
		}
	}
	return true, nil
}

// newest is the last thread of the chain that a set begins with.
func (s set) newest() thread.Record {
	rows := make(map[thread.ID]thread.Record, len(s.members))
	for _, rec := range s.members {
		rows[rec.ThreadID] = rec
	}
	rec := rows[s.top]
	for range s.members { // a circle ends
		next, there := rows[rec.ContinuationThreadID]
		if !there {
			break
		}
		rec = next
	}
	return rec
}

// livesAbove reports whether somebody above a set lives, who may look at it again. The
// thread that asks does not count, nor whoever is above that.
func (f *finding) livesAbove(ctx context.Context, s set) (bool, error) {
	at := slices.IndexFunc(s.members, func(rec thread.Record) bool { return rec.ThreadID == s.top })
	if at < 0 {
		return false, nil
	}
	seen := map[thread.ID]bool{}
	for id := s.members[at].ParentID; id != "" && !seen[id]; {
		seen[id] = true
		now, err := f.newestOf(ctx, id)
		switch {
		case errors.Is(err, thread.ErrNotFound):
			now, err = carrier{}, nil
		case err == nil && now.id == f.policy.from && now.id != "":
			now = carrier{}
		}
		if err != nil || now.lives {
			return now.lives, err
		}
		id = now.parent
	}
	return false, nil
}

// carrier is the thread that continues one which is above others.
type carrier struct {
	id, parent thread.ID // parent: of the one that is continued
	lives      bool
}

// newestOf looks a thread above others up once.
func (f *finding) newestOf(ctx context.Context, id thread.ID) (carrier, error) {
	if known, ok := f.above[id]; ok {
		return known, nil
	}
	rec, err := f.Threads.Store.Get(ctx, id)
	if err != nil {
		return carrier{}, err
	}
	now, err := lineage.Resolve(id, f.Threads.Getter(ctx))
	if err != nil {
		return carrier{}, err
	}
	f.above[id] = carrier{now.ThreadID, rec.ParentID, !now.Status.Terminal()}
	return f.above[id], nil
}
