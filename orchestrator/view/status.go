package view

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxChildrenShown bounds the children named in a status.
const maxChildrenShown = 50

// Status tells how one thread stands.
func (v *View) Status(ctx context.Context, id thread.ID) (Status, error) {
	rec, err := v.Threads.LookAsked(ctx, id)
	if err != nil {
		return Status{}, threads.Fault(err)
	}
	s := Status{
		Success: true, ThreadID: id, Status: rec.Status, Directive: rec.Directive, Name: rec.Name,
		ParentID: rec.ParentID, Model: rec.Model, Cost: rec.Cost, CreatedAt: rec.CreatedAt,
		UpdatedAt: rec.UpdatedAt, CancelRequested: !rec.CancelRequestedAt.IsZero(), Queued: rec.Queued(), Unread: rec.Unread,
	}
	if rec.ThreadID != id {
		s.ResolvedThreadID = rec.ThreadID
	}
	s.Error, s.Problem = problemOf(rec.Outcome)
	end := rec.CompletedAt
	if end.IsZero() {
		end = v.Threads.Now()
	}
	s.ElapsedSeconds = max(0, end.Sub(rec.CreatedAt).Seconds())

	if meta, err := v.Threads.Described(rec.ThreadID); err == nil {
		s.Limits, s.Warnings = &meta.Limits, meta.Warnings // what cannot be trusted is not shown, and hides nothing else
		if rec.Status.Terminal() && !meta.Status.Terminal() {
			v.Threads.Complete(ctx, rec)
		}
	}
	if o := rec.Outcome; o != nil {
		s.Warnings, s.Changes = slices.Concat(s.Warnings, o.Warnings), o.Changes
	}
	if last, err := v.Threads.LastWords(rec.ThreadID); err == nil {
		s.LastEvent, s.LastText = string(last.Event), last.Text
	}
	if s.Budget, err = v.budgetOf(ctx, rec, leastShare); err != nil {
		return Status{}, threads.Fault(err)
	}
	if s.Waiting, err = v.WaitingFor(ctx, map[thread.ID]thread.Record{id: rec}); err != nil {
		return Status{}, threads.Fault(err)
	}
	if err := v.addChain(ctx, &s, rec); err != nil {
		return Status{}, threads.Fault(err)
	}
	return s, nil
}

// addChain adds what a thread shares with those that it continues: what they have
// cost, and their children.
func (v *View) addChain(ctx context.Context, s *Status, rec thread.Record) error {
	get := v.Threads.Getter(ctx)
	chain, err := lineage.Chain(rec.ThreadID, func(id thread.ID) (thread.Record, error) {
		if id == rec.ThreadID {
			return rec, nil // most are alone in their chain
		}
		return get(id)
	})
	if err != nil {
		return err
	}
	if len(chain) > 1 {
		sum := threads.CostOf(chain)
		s.ChainCost = &sum
	}
	s.Children, err = v.childrenOf(ctx, chain)
	return err
}

// childrenOf names the newest children of the threads of a chain.
func (v *View) childrenOf(ctx context.Context, chain []thread.Record) (children []thread.ID, err error) {
	for _, rec := range slices.Backward(chain) {
		left := maxChildrenShown - len(children)
		if rec.SpawnCount == 0 || left <= 0 {
			continue
		}
		rows, _, err := v.Threads.Store.List(ctx, store.Filter{ParentID: rec.ThreadID, Limit: left})
		if err != nil {
			return nil, err
		}
		for _, child := range rows {
			children = append(children, child.ThreadID)
		}
	}
	return children, nil
}

// ListRequest selects threads. What was started for the items of a set is found by the
// set as its Parent, and by Text; else the set stands for it.
type ListRequest struct {
	States    []thread.State
	Directive string
	Parent    thread.ID
	Text      string
	Limit     int
	Cursor    string
}

// List returns a page of threads, newest first. Threads whose process is gone
// are settled before they are shown.
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
	rows, next, err := v.Threads.Store.List(ctx, store.Filter{
		States: req.States, Directive: req.Directive, ParentID: req.Parent, Text: req.Text,
		Limit: req.Limit, Cursor: req.Cursor, WithoutEntries: req.Parent == "" && req.Text == "",
	})
	if err != nil {
		return List{}, threads.Fault(err)
	}
	list := List{Success: true, Threads: []Summary{}, NextCursor: next}
	for _, rec := range rows {
		if now, err := v.Threads.Sweeper.Examine(ctx, rec); err == nil {
			rec = now
		} else {
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

// markAsking marks the threads of a list that wait for an answer.
func (v *View) markAsking(ctx context.Context, threads []Summary) error {
	if !slices.ContainsFunc(threads, func(s Summary) bool { return s.Status == thread.Running }) {
		return nil
	}
	open, err := v.Threads.Store.Questions(ctx, store.QuestionFilter{Open: true})
	if err != nil || len(open) == 0 {
		return err
	}
	asks := map[thread.ID]bool{}
	for _, q := range open {
		asks[q.ThreadID] = true
	}
	for i, s := range threads {
		threads[i].Asks = s.Status == thread.Running && asks[s.ThreadID]
	}
	return nil
}

func summary(rec thread.Record) Summary {
	s := Summary{
		ThreadID: rec.ThreadID, Kind: rec.Kind, Status: rec.Status, Directive: rec.Directive, Name: rec.Name,
		ParentID: rec.ParentID, ContinuationOf: rec.ContinuationOf, Model: rec.Model, Cost: rec.Cost, CreatedAt: rec.CreatedAt, UpdatedAt: rec.UpdatedAt,
		Queued: rec.Queued(), Unread: rec.Unread,
	}
	s.Error, _ = problemOf(rec.Outcome)
	return s
}

func stateNames() string {
	var names []string
	for _, s := range thread.States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
