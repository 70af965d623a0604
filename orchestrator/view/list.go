package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ListRequest selects threads. Those started for the items of a set are found by the
// set as their Parent, and by Text; else the set stands for them.
type ListRequest struct {
	States    []thread.State
	Directive string
	Parent    thread.ID
	Text      string
	Name      string          // a part of it
	Metadata  json.RawMessage // see [store.Filter]
	// OlderThan and NewerThan are since when a thread was not, or was, last used; nil: no
	// bound. The pages of a list have the time of the first.
	OlderThan, NewerThan *time.Duration
	Sort                 store.Sort
	Limit                int
	Cursor               string
}

// aged reports whether the list depends on what time it is.
func (r ListRequest) aged() bool { return r.OlderThan != nil || r.NewerThan != nil }

// List returns a page of threads, newest first unless it is sorted otherwise. Threads
// whose process is gone are settled before they are shown.
func (v *View) List(ctx context.Context, req ListRequest) (List, error) {
	for _, s := range req.States {
		if !s.Valid() {
			return List{}, tool.Faultf(tool.CodeBadArguments, "status %q is not known; valid are %s", s, stateNames())
		}
	}
	if slices.ContainsFunc(req.States, thread.State.Terminal) {
		// A thread that has just died belongs to those that ended.
		if _, err := v.Threads.Sweep(ctx); err != nil {
			v.Threads.Log.Error().Err(err).Msg("could not settle every thread whose process is gone")
		}
	}
	filter, asOf, err := v.filter(req)
	if err != nil {
		return List{}, threads.Fault(err)
	}
	rows, next, err := v.Threads.Store.List(ctx, filter)
	if err != nil {
		return List{}, threads.Fault(err)
	}
	list := List{Success: true, Threads: []Summary{}, NextCursor: next}
	if next != "" && len(rows) < cmp.Or(req.Limit, store.DefaultPage) {
		list.Partial, list.LookedAt = true, store.MaxScanned
	}
	if next != "" && req.aged() {
		list.NextCursor = fmt.Sprintf("%d.%s", asOf.UnixMilli(), next)
	}
	for _, rec := range rows {
		now, err := v.Threads.Sweeper.Examine(ctx, rec)
		switch {
		case thread.WasDeleted(err, rec.ThreadID):
			continue
		case err == nil:
			rec = now
		default:
			v.Threads.Log.Error().Err(err).Str("thread_id", string(rec.ThreadID)).Msg("could not settle a thread whose process is gone")
		}
		if len(req.States) > 0 && !slices.Contains(req.States, rec.Status) {
			continue
		}
		one := summary(rec)
		if one.Cost.Spend, err = v.spendOf(ctx, rec); err != nil {
			return List{}, threads.Fault(err)
		}
		list.Threads = append(list.Threads, one)
	}
	list.Count = len(list.Threads)
	if err := v.markAsking(ctx, list.Threads); err != nil {
		return List{}, threads.Fault(err)
	}
	return list, nil
}

// spendOf is what a thread has spent; of a set, which spends nothing itself, what all
// below it have.
func (v *View) spendOf(ctx context.Context, rec thread.Record) (thread.Micros, error) {
	if rec.Kind != thread.KindSet {
		return rec.Cost.Spend, nil
	}
	budget, err := v.Threads.Store.Budget(ctx, rec.ThreadID)
	if errors.Is(err, store.ErrNoBudget) {
		return 0, nil
	}
	return budget.Actual, err
}

// filter is a request as the store understands it, and the time that ages count from:
// now, or that of the first page.
func (v *View) filter(req ListRequest) (f store.Filter, asOf time.Time, err error) {
	f = store.Filter{
		States: req.States, Directive: req.Directive, ParentID: req.Parent, Text: req.Text, Name: req.Name, Metadata: req.Metadata,
		Sort: req.Sort, Limit: req.Limit, Cursor: req.Cursor, WithoutEntries: req.Parent == "" && req.Text == "",
	}
	if !req.aged() {
		return f, asOf, nil
	}
	asOf = time.UnixMilli(v.Threads.Now().UnixMilli()).UTC()
	if req.Cursor != "" {
		at, cursor, _ := strings.Cut(req.Cursor, ".")
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil || ms <= 0 || ms > asOf.UnixMilli() {
			return f, asOf, store.ErrBadCursor
		}
		asOf, f.Cursor = time.UnixMilli(ms).UTC(), cursor
	}
	if req.OlderThan != nil {
		f.UsedBefore = asOf.Add(-*req.OlderThan)
	}
	if req.NewerThan != nil {
		f.UsedSince = asOf.Add(-*req.NewerThan)
	}
	return f, asOf, nil
}

// SortNames are the orders of lists.
func SortNames() []string {
	names := []string{"created"}
	for _, by := range store.SortKeys() {
		if by != store.ByCreated {
			names = append(names, string(by))
		}
	}
	return names
}

// ParseSort reads the order of a list: a name of [SortNames], and asc or desc behind it.
// Left out, names begin with A, and all others with the newest or the most.
func ParseSort(text string) (store.Sort, error) {
	words := strings.Fields(strings.ToLower(strings.NewReplacer(",", " ", ":", " ").Replace(text)))
	if len(words) == 0 {
		return store.Sort{}, nil
	}
	at := slices.Index(SortNames(), words[0])
	direction := ""
	if len(words) > 1 {
		direction = words[1]
	}
	if at < 0 || len(words) > 2 || !slices.Contains([]string{"", "asc", "desc"}, direction) {
		return store.Sort{}, tool.Faultf(tool.CodeBadArguments, "sort %.60q is not known", text).
			With("valid_sort", SortNames()).WithHint("one of valid_sort, with asc or desc behind it")
	}
	sort := store.Sort{By: store.SortKeys()[at]}
	sort.Ascending = direction == "asc" || direction == "" && sort.By == store.ByName
	return sort, nil
}

// Brief is a list for a model, without what it has not asked for and what says the same
// twice.
func (l List) Brief(req ListRequest) List {
	for i := range l.Threads {
		if req.Sort.By != store.ByLastUsed && !req.aged() {
			l.Threads[i].LastUsed = time.Time{}
		}
		if req.Sort.By != store.ByTokens {
			l.Threads[i].TokenCount = 0
		}
	}
	return l
}

// markAsking marks the threads of a list that wait for an answer, and the sets whose threads
// do: those stand in no list beside it.
func (v *View) markAsking(ctx context.Context, threads []Summary) error {
	if !slices.ContainsFunc(threads, func(s Summary) bool { return s.Status == thread.Running }) {
		return nil
	}
	open, err := v.Threads.Store.Questions(ctx, store.QuestionFilter{Open: true})
	if err != nil || len(open) == 0 {
		return err
	}
	places, sets := map[thread.ID]int{}, map[thread.ID]int{}
	for i, s := range threads {
		places[s.ThreadID] = i
		if s.Kind == thread.KindSet {
			sets[s.ThreadID] = i
		}
	}
	for _, q := range open {
		i, listed := places[q.ThreadID]
		if !listed && len(sets) > 0 {
			rec, err := v.Threads.Store.Get(ctx, q.ThreadID)
			if err != nil && !errors.Is(err, thread.ErrNotFound) {
				return err
			}
			if i, listed = sets[rec.ParentID]; rec.Status != thread.Running {
				listed = false
			}
		}
		if listed {
			threads[i].Asks = threads[i].Status == thread.Running
		}
	}
	return nil
}

func summary(rec thread.Record) Summary {
	s := Summary{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Status: rec.Status, Directive: rec.Directive, Name: rec.Name,
		ParentID: rec.ParentID, ContinuationOf: rec.ContinuationOf, Model: rec.Model, Cost: rec.Cost, CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt,
		LastUsed: rec.LastUsed, TokenCount: rec.TokenCount, Metadata: labelled(rec), Queued: rec.Queued(), Unread: rec.Unread, Worker: rec.Worker, RetryAt: rec.RetryAt,
	}
	s.Error, _ = problemOf(rec.Outcome)
	return s
}

// labelled is the metadata of a thread; nil where there is none.
func labelled(rec thread.Record) tool.Object {
	if len(rec.Metadata) <= len("{}") {
		return nil
	}
	return tool.Object(rec.Metadata)
}

func stateNames() string {
	var names []string
	for _, s := range thread.States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
