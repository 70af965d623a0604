package health

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// mostRounds bounds how often everything is compared anew after something was mended: a
// row that came back shows what was wrong with others.
const mostRounds = 5

// mend is what one process of the project does at a time: another waits a while. Each
// mend is guarded all the same, since threads start and end meanwhile.
func (c *Checker) mend(ctx context.Context, in ReconcileInput, progress func(Looked)) (Reconciliation, error) {
	if c.Threads.Records.Seal() == nil { // there are no threads
		return c.mendAll(ctx, in, progress)
	}
	lease, err := c.Threads.AwaitLease(ctx, mendLease, mendPatience)
	if err == nil && lease == nil {
		err = tool.Faultf(tool.CodeConflict, "another process mends the records of this project").WithHint("call again later")
	}
	if err != nil {
		return Reconciliation{}, threads.Fault(err)
	}
	defer func() { _ = lease.Release() }()
	return c.mendAll(ctx, in, progress)
}

const (
	mendLease    = "reconcile"
	mendPatience = 20 * time.Second // for another process that mends
)

// mendAll mends what was found and compares again, until nothing is left that can be
// mended. A fault that is not found again was put right by a step for another one, or by
// another process.
func (c *Checker) mendAll(ctx context.Context, in ReconcileInput, progress func(Looked)) (Reconciliation, error) {
	var done []Finding
	var tried []fault
	settled := []thread.ID{}
	for round := 1; ; round++ {
		r := c.newReconciling(in.All, progress)
		r.applied = true
		if err := r.run(ctx); err != nil {
			return Reconciliation{}, err
		}
		for _, f := range tried {
			if !slices.ContainsFunc(r.faults, f.same) {
				done = append(done, f.asMended())
			}
		}
		settled = append(settled, r.Settled...)
		var mended []Finding
		if round < mostRounds {
			var err error
			if mended, tried, err = r.apply(ctx); err != nil {
				return Reconciliation{}, threads.Fault(err)
			}
		}
		if done = append(done, mended...); len(mended)+len(tried) == 0 || round == mostRounds {
			r.Settled = settled
			return r.answer(done), nil
		}
	}
}

// same reports whether two faults are the same one.
func (f fault) same(other fault) bool {
	return f.Kind == other.Kind && f.ThreadID == other.ThreadID
}

// asMended is the finding of a fault that was put right.
func (f fault) asMended() Finding {
	k, _ := kindOf(f.Kind)
	told := f.Finding
	told.Mended, told.Mend = true, k.Mend
	return told
}

// apply mends what can be. Tried are faults that were in another state by then. The others
// that stay say why.
func (r *reconciling) apply(ctx context.Context) (mended []Finding, tried []fault, err error) {
	mended, err = r.takeBack(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range r.faults {
		f := &r.faults[i]
		if f.mend == nil {
			continue
		}
		changed, err := f.mend(ctx)
		switch {
		case context.Cause(ctx) != nil:
			return nil, nil, context.Cause(ctx)
		case err != nil:
			f.Detail += "; it could not be mended: " + err.Error()
		case changed:
			mended = append(mended, r.mended(*f))
		default:
			tried = append(tried, *f)
		}
	}
	return mended, tried, nil
}

// mended notes a fault that was put right.
func (r *reconciling) mended(f fault) Finding {
	r.Checker.Threads.Crashpoints.At(crashMended(f.Kind))
	r.Checker.Threads.Log.Info().Str("kind", f.Kind).Str("thread_id", string(f.ThreadID)).Str("detail", f.Detail).Msg("mended what disagreed")
	return f.asMended()
}

// takeBack makes rows and budgets again from folders, all in one step.
func (r *reconciling) takeBack(ctx context.Context) (mended []Finding, err error) {
	var folders []records.Found
	for _, f := range r.faults {
		if f.folder != nil {
			folders = append(folders, *f.folder)
		}
	}
	if len(folders) == 0 {
		return nil, nil
	}
	t := r.Checker.Threads
	done, err := (&recovery.Rebuilder{Records: t.Records, Store: t.Store, Life: t.Life, Stopped: true}).Take(ctx, folders...)
	if err != nil || done.Threads+done.Budgets == 0 {
		return nil, err
	}
	skipped := map[thread.ID]error{}
	for _, s := range done.Skipped {
		skipped[s.ThreadID] = s.Why
	}
	for i := range r.faults {
		f := &r.faults[i]
		if f.folder == nil {
			continue
		}
		if why := skipped[f.ThreadID]; why != nil {
			f.Detail += "; it could not be mended: " + why.Error()
			continue
		}
		mended = append(mended, r.mended(*f))
	}
	return mended, nil
}

// ignoreGone leaves out that a thread was deleted since.
func ignoreGone(err error) error {
	if errors.Is(err, thread.ErrNotFound) {
		return nil
	}
	return err
}

// writeEnd writes the files of a thread that never ran and ended by its row alone.
func (r *reconciling) writeEnd(ctx context.Context, id thread.ID) (bool, error) {
	t := r.Checker.Threads
	if err := t.Records.Of(id).Prepare(); err != nil {
		return false, err
	}
	rec, hold, ok, err := r.Checker.Threads.Sweeper.ClaimEnded(ctx, id)
	if !ok {
		return false, err
	}
	defer func() { _ = hold.Release() }()
	w, err := t.Finisher.OpenTranscript(id, rec.Run)
	if err != nil {
		return false, err
	}
	defer func() { _ = w.Close() }()
	_, err = t.Finisher.Finish(ctx, t.Store.Runner(id, rec.Run), w, *rec.Outcome, rec.Cost)
	return err == nil, err
}

// complete repeats the last steps of an end.
func (r *reconciling) complete(ctx context.Context, id thread.ID) (bool, error) {
	rec, err := r.Checker.Threads.Store.Get(ctx, id)
	if err != nil {
		return false, ignoreGone(err)
	}
	if err := r.Checker.Threads.Sweeper.Complete(ctx, rec); err != nil {
		return false, err
	}
	meta, err := r.Checker.Threads.OwnMeta(id)
	return err == nil && meta.Status.Terminal(), err
}

// correct brings a row to the end that the thread has signed.
func (r *reconciling) correct(ctx context.Context, id thread.ID) (bool, error) {
	t := r.Checker.Threads
	rec, err := t.Store.Get(ctx, id)
	if err != nil {
		return false, ignoreGone(err)
	}
	run := rec.Run
	if !rec.Status.Terminal() {
		var done func()
		run, done = t.NewRun()
		defer done()
	}
	if held, err := t.Life.Held(life.Key{Thread: id}); held || err != nil {
		return false, err // somebody starts or ends it
	}
	hold, err := t.Life.Claim(life.Key{Thread: id, Run: run})
	if errors.Is(err, life.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = hold.Release() }()
	if !rec.Status.Terminal() {
		if _, err := t.Store.Replace(ctx, id, rec.Run, run); err != nil {
			return false, err
		}
		t.Crashpoints.At(crashReplaced)
	}
	meta, err := t.OwnMeta(id)
	if err != nil || !meta.Status.Terminal() {
		return false, err
	}
	end, err := r.signedEnd(meta, false)
	if err != nil {
		return false, err
	}
	end.Run = run
	return t.Store.Mend().Correct(ctx, *end)
}

// render writes the knowledge entry of a thread that has ended.
func (r *reconciling) render(ctx context.Context, id thread.ID) (bool, error) {
	rec, hold, ok, err := r.Checker.Threads.Sweeper.ClaimEnded(ctx, id)
	if !ok {
		return false, err
	}
	defer func() { _ = hold.Release() }()
	if meta, err := r.Checker.Threads.OwnMeta(id); err != nil || differ(meta, r.outline(rec)) {
		return false, err
	}
	if err := r.Checker.Threads.Finisher.Render(rec); err != nil {
		return false, err
	}
	return true, r.Checker.Threads.Finisher.CheckRendering(rec)
}

// forgetLives removes the locks that processes of an ended thread have left.
func (r *reconciling) forgetLives(ctx context.Context, id thread.ID) (bool, error) {
	_, hold, ok, err := r.Checker.Threads.Sweeper.ClaimEnded(ctx, id)
	if !ok {
		return false, err
	}
	return true, hold.End()
}

// settle settles the budget of a thread that has ended.
func (r *reconciling) settle(ctx context.Context, id thread.ID) (bool, error) {
	t := r.Checker.Threads
	rec, err := t.Store.Get(ctx, id)
	if err != nil || !rec.Status.Terminal() {
		return false, ignoreGone(err)
	}
	by := t.Store.Runner(id, rec.Run)
	if err := by.Report(ctx, rec.Cost.Spend, t.Now()); err != nil && !errors.Is(err, store.ErrNoBudget) {
		return false, err
	}
	return true, by.Settle(ctx, t.Now())
}
