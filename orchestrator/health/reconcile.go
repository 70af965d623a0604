package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Kinds of finding.
const (
	findFolderMissing = "folder_missing"
	findRowMissing    = "row_missing"
	findReservation   = "reservation_without_thread"
	findProcess       = "process_missing"
	findChain         = "chain_broken"
	findParent        = "parent_missing"
	findUnreadable    = "meta_unreadable"
	findDisagrees     = "meta_disagrees"
	findLock          = "lock_stale"
)

// Reconcile compares registry, ledger and folders and says where they disagree.
// Threads that are dead are settled, as by every look; beside that nothing is
// changed. Folders and rows younger than five minutes may still be on their way and
// are passed over.
//
// Its cost does not grow with the number of threads that have ended, unless all
// is asked for: it goes through the newest, those that have not ended, and some
// folders, and says when there are more. Progress may be nil.
func (c *Checker) Reconcile(ctx context.Context, in ReconcileInput, progress func(Looked)) (Reconciliation, error) {
	return c.newReconciling(in.All, progress).run(ctx)
}

// Disagreements counts what [Checker.Reconcile] would find, but for what is in
// thread.json: to read hundreds of those would keep a server that starts busy.
func (c *Checker) Disagreements(ctx context.Context) (int, error) {
	r := c.newReconciling(false, nil)
	r.reading = false
	found, err := r.run(ctx)
	return len(found.Findings), err
}

// reconciling is one comparison.
type reconciling struct {
	*Checker
	Reconciliation
	all      bool // threads, and not only the newest
	reading  bool // thread.json is read
	progress func(Looked)
	rows     map[thread.ID]thread.Record // of the fields that are compared
	seen     map[thread.ID]records.Found
	walked   bool // no folder is missing in seen
}

func (c *Checker) newReconciling(all bool, progress func(Looked)) *reconciling {
	return &reconciling{
		Checker: c, all: all, reading: true, progress: progress,
		rows: map[thread.ID]thread.Record{}, seen: map[thread.ID]records.Found{},
		Reconciliation: Reconciliation{Settled: []thread.ID{}, Findings: []Finding{}},
	}
}

func (r *reconciling) run(ctx context.Context) (Reconciliation, error) {
	for _, part := range []func(context.Context) error{r.readRows, r.walkFolders, r.compareRows, r.compareBudgets} {
		if err := part(ctx); err != nil {
			return Reconciliation{}, threads.Fault(err)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.ThreadID, b.ThreadID) })
	r.Success, r.Partial = len(r.Findings) == 0, !r.walked || r.Reconciliation.Threads < r.Total
	switch {
	case !r.Success:
		r.Next = "each finding says in mend what puts it right"
	case r.Partial:
		r.Next = "nothing disagrees among those looked at; reconcile_threads with all compares every thread"
	}
	return r.Reconciliation, nil
}

func (r *reconciling) find(kind string, id thread.ID, mend, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Kind: kind, ThreadID: id, Detail: fmt.Sprintf(format, args...), Mend: mend})
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
	case err != nil:
		now = rec
		r.find(findProcess, rec.ThreadID, "put right what the detail says, then get_status of the thread",
			"its process is gone and it cannot be settled: %v", err)
	case now.Status.Terminal() && !rec.Status.Terminal():
		r.Settled = append(r.Settled, rec.ThreadID)
	}
	r.Reconciliation.Threads++
	r.rows[rec.ThreadID] = outline(now)
}

// row is a row that was read, or is read now because another names it.
func (r *reconciling) row(ctx context.Context, id thread.ID) (rec thread.Record, known bool, err error) {
	if rec, known = r.rows[id]; known {
		return rec, true, nil
	}
	rec, err = r.Checker.Threads.Store.Get(ctx, id)
	if errors.Is(err, thread.ErrNotFound) {
		return rec, false, nil
	}
	return rec, err == nil, err
}

// outline keeps what is compared of a row: of 100 000 the results alone would
// fill the memory.
func outline(rec thread.Record) thread.Record {
	return thread.Record{
		ThreadID: rec.ThreadID, ParentID: rec.ParentID, Status: rec.Status, QueuedAt: rec.QueuedAt, CreatedAt: rec.CreatedAt,
		ContinuationOf: rec.ContinuationOf, ContinuationThreadID: rec.ContinuationThreadID,
	}
}

// walkFolders goes through the folders and looks for their rows.
func (r *reconciling) walkFolders(ctx context.Context) (err error) {
	strays := r.strays(r.strayFolder)
	r.walked, err = r.Checker.Threads.Records.Walk(mostFolders(r.all), func(f records.Found) error {
		r.Folders++
		r.seen[f.ID] = f
		if f.Linked {
			r.linked(f)
			return context.Cause(ctx)
		}
		if _, known := r.rows[f.ID]; known {
			return context.Cause(ctx)
		}
		return strays.add(ctx, f)
	})
	if err != nil {
		return err
	}
	return strays.flush(ctx)
}

func (r *reconciling) linked(f records.Found) {
	r.find(findUnreadable, f.ID, "remove the link", "%s is a symbolic link, which is not followed", f.Where)
}

// folderOf is the folder of a thread whose row was read.
func (r *reconciling) folderOf(id thread.ID) (f records.Found, found bool, err error) {
	if f, found = r.seen[id]; found || r.walked {
		return f, found, nil
	}
	f, found, err = r.Checker.Threads.Records.Look(id)
	if err != nil || !found {
		return f, false, err
	}
	if _, told := r.seen[f.ID]; !told {
		r.Folders++
		r.seen[f.ID] = f
		if f.Linked {
			r.linked(f)
		}
	}
	return f, f.ID == id, nil
}

// strayFolder tells of a folder that no row knows.
func (r *reconciling) strayFolder(f records.Found) {
	held, err := r.Checker.Threads.Life.Held(life.Key{Thread: f.ID})
	switch {
	case err != nil:
		r.find(findLock, f.ID, "put right what the detail says", "its lock cannot be looked at: %v", err)
	case held:
		r.find(findRowMissing, f.ID, "the process that holds the lock is not known here: end it, or leave it be",
			"somebody holds the life lock of a thread without a row")
	case f.HasMeta || f.HasWords:
		r.find(findRowMissing, f.ID, "remove the folder when nobody needs it",
			"the folder of a thread without a row; it has thread.json: %t, transcript: %t", f.HasMeta, f.HasWords)
	default:
		r.find(findLock, f.ID, "remove the folder", "what is left of a start that was cut short before the thread was registered")
	}
}

// compareMeta compares thread.json with the row.
func (r *reconciling) compareMeta(ctx context.Context, f records.Found, rec thread.Record) error {
	if !f.HasMeta && (rec.QueuedAt.IsZero() || r.recent(rec.CreatedAt)) {
		return nil // it failed before it had one, or is about to get it
	}
	meta, err := r.Checker.Threads.Records.Of(f.ID).Meta().Read()
	if err == nil && meta.ThreadID == rec.ThreadID && meta.Status.Terminal() != rec.Status.Terminal() {
		if settling, err := r.Checker.Threads.Life.Held(life.Key{Thread: f.ID}); err == nil && settling {
			return nil // whoever ends it is about to make the two agree
		}
		if rec, err = r.Checker.Threads.Store.Get(ctx, f.ID); err != nil { // it may have ended since the rows were read
			return err
		}
	}
	switch {
	case err != nil:
		r.find(findUnreadable, f.ID, "put back the file as it was; without it the thread can start no children", "%v", err)
	case meta.ThreadID != rec.ThreadID:
		r.find(findDisagrees, f.ID, "put back the file as it was", "thread.json is that of %s", meta.ThreadID)
	case meta.Status.Terminal() && meta.Status != rec.Status:
		r.find(findDisagrees, f.ID, "the row counts; get_status of the thread shows it",
			"thread.json says %s and the row %s", meta.Status, rec.Status)
	case rec.Status.Terminal() && !meta.Status.Terminal():
		r.find(findDisagrees, f.ID, "get_status of the thread brings thread.json up to date",
			"the row says %s and thread.json still %s", rec.Status, meta.Status)
	}
	return context.Cause(ctx)
}

// compareRows goes through the rows and looks for their folders and relatives.
func (r *reconciling) compareRows(ctx context.Context) error {
	done := 0
	for id, rec := range r.rows {
		f, found, err := r.folderOf(id)
		switch {
		case err != nil:
		case !found && !r.recent(rec.CreatedAt):
			r.find(findFolderMissing, id, "nothing brings back a removed folder; result and cost are in the row",
				"the thread is %s and its folder is gone", rec.Status)
		case found && !f.Linked && (r.reading || !f.HasMeta):
			err = r.compareMeta(ctx, f, rec)
		}
		if err == nil {
			err = r.compareRelatives(ctx, rec)
		}
		if err != nil {
			return err
		}
		done++
		tell(r.progress, done, len(r.rows))
	}
	return nil
}

// compareRelatives looks for the parent of a thread, and checks that both ends of a
// hand-over name each other.
func (r *reconciling) compareRelatives(ctx context.Context, rec thread.Record) error {
	if rec.ParentID != "" {
		if _, known, err := r.row(ctx, rec.ParentID); err != nil {
			return err
		} else if !known {
			r.find(findParent, rec.ThreadID, "nothing needs to be done: the thread counts as one without a parent",
				"its parent %s has no row", rec.ParentID)
		}
	}
	const mend = "read_transcript of both shows which continues which; the thread named first stays readable"
	if next := rec.ContinuationThreadID; next != "" {
		if successor, _, err := r.row(ctx, next); err != nil {
			return err
		} else if successor.ContinuationOf != rec.ThreadID {
			r.find(findChain, rec.ThreadID, mend, "it says that %s continues it, which does not say so", next)
		}
	} else if rec.Status == thread.Continued {
		r.find(findChain, rec.ThreadID, "resume_thread goes on with what it had said", "it has handed over, and nobody continues it")
	}
	if before := rec.ContinuationOf; before != "" {
		if _, known, err := r.row(ctx, before); err != nil {
			return err
		} else if !known {
			r.find(findChain, rec.ThreadID, mend, "it continues %s, which has no row", before)
		}
	}
	return nil
}

// compareBudgets looks for reservations that nobody will release.
func (r *reconciling) compareBudgets(ctx context.Context) error {
	active, err := r.Checker.Threads.Store.Active(ctx)
	if err != nil {
		return err
	}
	r.Budgets = len(active)
	for _, b := range active {
		rec, known := r.rows[b.ThreadID]
		if r.recent(b.CreatedAt) || known && !rec.Status.Terminal() {
			continue
		}
		// It may have started since the rows were read.
		now, err := r.Checker.Threads.Store.Get(ctx, b.ThreadID)
		const mend = "it holds the amount at its parent for as long as that works; afterwards it is of no consequence"
		switch {
		case err == nil && !now.Status.Terminal():
		case err != nil && !errors.Is(err, thread.ErrNotFound):
			return err
		case err == nil:
			r.find(findReservation, b.ThreadID, mend, "the thread is %s and its budget of %s is not settled", now.Status, b.MaxSpend)
		default:
			r.find(findReservation, b.ThreadID, mend, "a budget of %s without a thread", b.MaxSpend)
		}
	}
	return nil
}
