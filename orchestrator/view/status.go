package view

import (
	"context"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
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
		UpdatedAt: rec.UpdatedAt, TokenCount: rec.TokenCount, Metadata: labelled(rec), CancelRequested: !rec.CancelRequestedAt.IsZero(), Queued: rec.Queued(), Unread: rec.Unread,
		Worker: rec.Worker, NoWorker: v.Threads.NoWorker(ctx, rec),
	}
	if rec.ThreadID != id {
		s.ResolvedThreadID = rec.ThreadID
	}
	if v.ItemsWait != nil {
		s.ItemsWait = v.ItemsWait(ctx, rec)
	}
	s.Error, s.Problem = problemOf(rec.Outcome)
	s.Retry, s.NotRetried = retryOf(rec), rec.RetryNote
	end := rec.CompletedAt
	if end.IsZero() {
		end = v.Threads.Now()
	}
	s.ElapsedSeconds = max(0, end.Sub(rec.CreatedAt).Seconds())

	if meta, err := v.Threads.Described(rec.ThreadID); err == nil {
		s.Limits, s.Warnings, s.Snapshot = &meta.Limits, meta.Warnings, snapshot.Hash(meta.Snapshot).Short() // meta that cannot be trusted is not shown, and hides nothing else
		if rec.Status.Terminal() && !meta.Status.Terminal() {
			v.Threads.Complete(ctx, rec)
		}
	}
	if o := rec.Outcome; o != nil {
		s.Warnings, s.Changes = slices.Concat(s.Warnings, warningsOf(rec)), o.Changes
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
