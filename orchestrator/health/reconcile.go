package health

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Reconcile compares registry, ledger, folders and renderings and says where they
// disagree, see [Kinds]. Threads that are dead are settled, as by every look; beside that
// nothing is changed unless in says to apply what can be mended. Rows that are created,
// and folders without a row, may still be on their way and are passed over for five
// minutes.
//
// Its cost does not grow with the number of threads that have ended, unless all
// is asked for: it goes through the newest, those that have not ended, and some
// folders, and says when there are more. Progress may be nil.
func (c *Checker) Reconcile(ctx context.Context, in ReconcileInput, progress func(Looked)) (Reconciliation, error) {
	if in.Apply {
		return c.mend(ctx, in, progress)
	}
	r := c.newReconciling(in.All, progress)
	if err := r.run(ctx); err != nil {
		return Reconciliation{}, err
	}
	return r.answer(nil), nil
}

// Disagreements counts what [Checker.Reconcile] would find, but for what is in
// files: to read hundreds of those would keep a server that starts busy.
func (c *Checker) Disagreements(ctx context.Context) (int, error) {
	r := c.newReconciling(false, nil)
	r.reading = false
	err := r.run(ctx)
	return len(r.faults), err
}

// reconciling is one comparison.
type reconciling struct {
	*Checker
	Reconciliation
	all       bool // threads, and not only the newest
	reading   bool // files are read
	applied   bool // findings that can be mended are
	progress  func(Looked)
	rows      map[thread.ID]row
	followers map[thread.ID][]thread.ID // by the thread that they say they continue
	seen      map[thread.ID]records.Found
	walked    bool // no folder is missing in seen
	faults    []fault
}

// row is what is compared of a row: of 100 000 the results alone would fill the memory.
type row struct {
	thread.Record // without outcome and metadata

	end      [sha256.Size]byte // of the outcome
	handoff  thread.ID         // that its outcome names
	refused  bool              // it was to continue another and never came to it
	neverRan bool
	gone     bool // its records are known to be gone
}

// fault is something that was found.
type fault struct {
	Finding
	rank int // of its kind, see [Kinds]
	// mend puts it right in one guarded step, and reports whether it has changed anything;
	// nil: apply does nothing about it.
	mend func(context.Context) (bool, error)
	// folder is what a row or a budget is made again from, in place of mend: many of
	// those are one step.
	folder *records.Found
}

func (f fault) mendable() bool { return f.mend != nil || f.folder != nil }

func (c *Checker) newReconciling(all bool, progress func(Looked)) *reconciling {
	return &reconciling{
		Checker: c, all: all, reading: true, progress: progress,
		rows: map[thread.ID]row{}, followers: map[thread.ID][]thread.ID{}, seen: map[thread.ID]records.Found{},
		Reconciliation: Reconciliation{Settled: []thread.ID{}, Findings: []Finding{}},
	}
}

func (r *reconciling) run(ctx context.Context) error {
	parts := []func(context.Context) error{r.readRows, r.walkFolders, r.compareRows, r.compareReservations}
	if r.reading {
		parts = append(parts, r.compareBudgets, r.findDrafts, r.findDeletions)
	}
	if r.reading && r.all {
		parts = append(parts, r.findArtifacts)
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return threads.Fault(err)
		}
	}
	slices.SortStableFunc(r.faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.ThreadID, b.ThreadID))
	})
	return nil
}

// answer is what is told, with what was mended before.
func (r *reconciling) answer(mended []Finding) Reconciliation {
	a := r.Reconciliation
	a.Findings = slices.Clone(mended)
	for _, f := range r.faults {
		a.Findings = append(a.Findings, f.Finding)
	}
	slices.SortStableFunc(a.Findings, func(x, y Finding) int { return cmp.Compare(x.ThreadID, y.ThreadID) })
	a.Mended = len(mended)
	a.Success, a.Partial = len(r.faults) == 0, !r.walked || a.Threads < a.Total
	a.Mendable = !r.applied && slices.ContainsFunc(r.faults, fault.mendable)
	switch {
	case a.Mendable:
		a.Next = "reconcile_threads with apply mends what it can; each other finding says in mend what puts it right"
	case !a.Success:
		a.Next = "each finding that is not mended says in mend what puts it right"
	case a.Partial:
		a.Next = "nothing disagrees among those looked at; reconcile_threads with all compares every thread"
	}
	if a.Findings == nil {
		a.Findings = []Finding{}
	}
	return a
}

// find notes something that apply does nothing about.
func (r *reconciling) find(kind string, id thread.ID, format string, args ...any) {
	r.add(kind, id, fault{}, format, args...)
}

// findMendable notes something that a step puts right.
func (r *reconciling) findMendable(
	kind string, id thread.ID, mend func(context.Context) (bool, error), format string, args ...any,
) {
	r.add(kind, id, fault{mend: mend}, format, args...)
}

// findLost notes what can be made again from a folder.
func (r *reconciling) findLost(kind string, f records.Found, format string, args ...any) {
	r.add(kind, f.ID, fault{folder: &f}, format, args...)
}

func (r *reconciling) add(kind string, id thread.ID, f fault, format string, args ...any) {
	k, rank := kindOf(kind)
	f.Finding, f.rank = Finding{Kind: kind, ThreadID: id, Detail: fmt.Sprintf(format, args...), Mend: k.Advice}, rank
	if f.mendable() {
		f.Mend = "apply " + k.Mend
	}
	r.faults = append(r.faults, f)
}

// readRows reads the registry and settles who is dead.
func (r *reconciling) readRows(ctx context.Context) error {
	st, err := r.Checker.Threads.Store.Stats(ctx, store.StatsSince{Used: r.Checker.Threads.Now(), Created: r.Checker.Threads.Now()})
	if err != nil {
		return err
	}
	r.Total = st.Threads
	err = store.EachRow(ctx, r.Checker.Threads.Store, nil, func(rec thread.Record) error {
		if !r.all && r.Reconciliation.Threads == manyThreads {
			return errEnough
		}
		r.readRow(ctx, rec)
		return context.Cause(ctx)
	})
	if !errors.Is(err, errEnough) {
		return err
	}
	return store.EachRow(ctx, r.Checker.Threads.Store, []thread.State{thread.Created, thread.Running}, func(rec thread.Record) error {
		if _, read := r.rows[rec.ThreadID]; !read {
			r.readRow(ctx, rec)
		}
		return context.Cause(ctx)
	})
}

// errEnough says that the rows which were read are as many as were wanted.
var errEnough = errors.New("enough rows were read")

func (r *reconciling) readRow(ctx context.Context, rec thread.Record) {
	now, err := r.Checker.Threads.Sweeper.Examine(ctx, rec)
	switch {
	case thread.WasDeleted(err, rec.ThreadID):
		return
	case err != nil:
		now = rec
		r.find(findProcess, rec.ThreadID, "its process is gone and it cannot be settled: %v", err)
	case now.Status.Terminal() && !rec.Status.Terminal():
		r.Settled = append(r.Settled, rec.ThreadID)
	}
	r.Reconciliation.Threads++
	r.rows[rec.ThreadID] = r.outline(now)
	if now.ContinuationOf != "" {
		r.followers[now.ContinuationOf] = append(r.followers[now.ContinuationOf], now.ThreadID)
	}
}

// row is a row that was read, or is read now because another names it.
func (r *reconciling) row(ctx context.Context, id thread.ID) (found row, known bool, err error) {
	if found, known = r.rows[id]; known {
		return found, true, nil
	}
	rec, err := r.Checker.Threads.Store.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return row{}, false, nil
	}
	return r.outline(rec), err == nil, err
}
