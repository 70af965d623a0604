package health

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// compareRelatives holds the relatives that a row names against the rows, against what
// the thread has signed (meta is nil where that is not known), and against what those
// relatives say.
func (r *reconciling) compareRelatives(ctx context.Context, rec row, meta *thread.Meta) error {
	if err := r.compareParent(ctx, rec, meta); err != nil {
		return err
	}
	was := store.RelativesOf(rec.Record)
	now, err := r.chainOf(ctx, rec, meta)
	switch {
	case err != nil:
		return err
	case now != was:
		r.findMendable(findChain, rec.ThreadID, r.relate(rec.ThreadID, was, now), "%s", chainDetail(was, now))
	case rec.Status == thread.Continued && was.ContinuedBy == "":
		r.find(findChain, rec.ThreadID, "it has handed over, and nobody continues it")
	}
	return nil
}

func (r *reconciling) relate(id thread.ID, was, now store.Relatives) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return r.Checker.Threads.Store.Mend().Relate(ctx, id, was, now)
	}
}

func (r *reconciling) compareParent(ctx context.Context, rec row, meta *thread.Meta) error {
	was := store.RelativesOf(rec.Record)
	now := was
	if meta != nil {
		now.Parent = meta.ParentID
	}
	known, err := r.known(ctx, now.Parent)
	switch {
	case err != nil:
		return err
	case !known:
		now.Parent = ""
	}
	if now.Parent == was.Parent {
		return nil
	}
	if was, err := r.known(ctx, was.Parent); err != nil {
		return err
	} else if !was {
		r.findMendable(findParent, rec.ThreadID, r.relate(rec.ThreadID, store.RelativesOf(rec.Record), now), "its parent %s has no row", rec.ParentID)
		return nil
	}
	r.findMendable(findParentDiffers, rec.ThreadID, r.relate(rec.ThreadID, was, now), "the row names %q as its parent, and thread.json %q", was.Parent, now.Parent)
	return nil
}

// known reports whether there is a row of a thread; there is one of nobody.
func (r *reconciling) known(ctx context.Context, id thread.ID) (bool, error) {
	if id == "" {
		return true, nil
	}
	_, known, err := r.row(ctx, id)
	return known, err
}

// chainOf is the place that a thread has in its chain: before it and at the root what it
// has signed, behind it who has signed to continue it and came to that.
func (r *reconciling) chainOf(ctx context.Context, rec row, meta *thread.Meta) (store.Relatives, error) {
	now := store.RelativesOf(rec.Record)
	if meta != nil {
		now.ContinuationOf, now.ChainRoot = meta.ContinuationOf, meta.ChainRootID
		if now.ChainRoot == rec.ThreadID {
			now.ChainRoot = ""
		}
	}
	for _, named := range []*thread.ID{&now.ContinuationOf, &now.ChainRoot} {
		known, err := r.known(ctx, *named)
		if err != nil {
			return now, err
		}
		if !known {
			*named = ""
		}
	}
	var err error
	now.ContinuedBy, err = r.continuedBy(ctx, rec)
	return now, err
}

// continuedBy is the thread that continues another.
func (r *reconciling) continuedBy(ctx context.Context, rec row) (thread.ID, error) {
	if named := rec.ContinuationThreadID; named != "" {
		next, known, err := r.row(ctx, named)
		if err != nil {
			return "", err
		}
		if known && (next.ContinuationOf == rec.ThreadID || r.signedBefore(next) == rec.ThreadID) {
			return named, nil
		}
	}
	if !rec.Status.Terminal() {
		return "", nil
	}
	for _, id := range r.followers[rec.ThreadID] {
		next := r.rows[id]
		if rec.handoff == id || rec.handoff == "" && !next.refused && next.Status != thread.Created && next.Status != "" {
			return id, nil
		}
	}
	return "", nil
}

// signedBefore is the thread that another continues by what it has signed: its row may
// say something else, which is found at that.
func (r *reconciling) signedBefore(next row) thread.ID {
	if !r.reading {
		return ""
	}
	meta, err := r.Checker.Threads.OwnMeta(next.ThreadID)
	if err != nil {
		return ""
	}
	return meta.ContinuationOf
}

func chainDetail(was, now store.Relatives) string {
	switch {
	case was.ContinuedBy != now.ContinuedBy && now.ContinuedBy == "":
		return "it says that " + string(was.ContinuedBy) + " continues it, which does not say so"
	case was.ContinuedBy != now.ContinuedBy:
		return "it does not say that " + string(now.ContinuedBy) + " continues it, which does"
	case was.ContinuationOf != now.ContinuationOf && now.ContinuationOf == "":
		return "it continues " + string(was.ContinuationOf) + ", which has no row or does not know of it"
	case was.ContinuationOf != now.ContinuationOf:
		return "by what it has signed it continues " + string(now.ContinuationOf)
	}
	return "the first of its chain is " + string(now.ChainRoot) + " by what is signed, and not " + string(was.ChainRoot)
}
