package daily

import (
	"context"
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Another attempt for a failed root is a root of its own in the ledger, with what the one before
// has left. It can be made on another machine, whose book is not this one. So a root is open as long
// as the rows say that an attempt is to come, and counts with those that were made; an attempt that
// is made here has no entry of its own then.

// maxAttempts bounds a walk through rows that somebody has put in a circle.
const maxAttempts = 1000

// before is the root of the attempt before that of a root; empty: there was none.
func (s *Store) before(ctx context.Context, root thread.ID) (thread.ID, error) {
	rec, err := s.Get(ctx, root)
	if err == nil && rec.ContinuationOf != "" {
		rec, err = s.Get(ctx, rec.ContinuationOf)
	}
	switch {
	case errors.Is(err, thread.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case rec.ThreadID == root, !triesAgain(rec):
		return "", nil
	}
	x, err := s.Exposure(ctx, rec.ThreadID)
	if errors.Is(err, store.ErrNoBudget) {
		return "", nil
	}
	return x.Root, err
}

// after is the root of the attempt after that of a root; empty: there is none yet.
func (s *Store) after(ctx context.Context, root thread.ID) (thread.ID, error) {
	rec, err := s.Get(ctx, root)
	for range maxAttempts {
		if err != nil || rec.Status != thread.Continued || rec.ContinuationThreadID == "" {
			break
		}
		rec, err = s.Get(ctx, rec.ContinuationThreadID)
	}
	if errors.Is(err, thread.ErrNotFound) || err == nil && !triesAgain(rec) {
		return "", nil
	}
	return rec.ContinuationThreadID, err
}

// triesAgain reports whether a thread has ended with another attempt to come.
func triesAgain(rec thread.Record) bool { return rec.Outcome != nil && rec.Outcome.Retry != nil }

// entryOf is the entry in which a root counts: that of the first attempt that is open in the book,
// or its own.
func (s *Store) entryOf(ctx context.Context, root thread.ID) (thread.ID, error) {
	var earlier []thread.ID
	for at := root; len(earlier) < maxAttempts; {
		var err error
		if at, err = s.before(ctx, at); err != nil {
			return "", err
		}
		if at == "" {
			break
		}
		earlier = append(earlier, at)
	}
	if len(earlier) == 0 {
		return root, nil
	}
	open, err := s.Book.Open(ctx)
	if err != nil {
		return "", err
	}
	for _, first := range slices.Backward(earlier) {
		if slices.Contains(open, Entry{Project: s.Project, ThreadID: first}) {
			return first, nil
		}
	}
	return root, nil
}

// sum is what a root and the attempts after it may come to, but for one of them.
func (s *Store) sum(ctx context.Context, root, but thread.ID) (sum store.Exposure, roots []thread.ID, err error) {
	sum.Root = root
	for range maxAttempts {
		x, err := s.Exposure(ctx, root)
		switch {
		case errors.Is(err, store.ErrNoBudget) && len(roots) > 0: // it ended before it had one
		case err != nil:
			return sum, nil, err
		case root != but:
			sum.Most, sum.Open = sum.Most.Plus(x.Most), sum.Open || x.Open
		}
		roots = append(roots, root)
		if root, err = s.after(ctx, root); root == "" || err != nil {
			return sum, roots, err
		}
	}
	return sum, roots, nil
}

// standing is what an entry may come to. It is open, too, while something of its trees is to be
// tried again.
func (s *Store) standing(ctx context.Context, entry thread.ID) (store.Exposure, error) {
	sum, roots, err := s.sum(ctx, entry, "")
	if err == nil && !sum.Open {
		sum.Open, err = s.awaited(ctx, roots)
	}
	return sum, err
}

// mostAwaited is how many threads are looked at that are to be tried again; of more, any may be
// one that is looked for.
const mostAwaited = 1000

// awaited reports whether a thread below one of some roots is to be tried again.
func (s *Store) awaited(ctx context.Context, roots []thread.ID) (bool, error) {
	ever := s.Book.Now().Add(2 * thread.MaxRetryGap)
	retries, _, err := s.DueRetries(ctx, ever, mostAwaited)
	if err != nil || len(retries) == mostAwaited {
		return true, err
	}
	for _, rec := range retries {
		x, err := s.Exposure(ctx, rec.ThreadID)
		if err != nil && !errors.Is(err, store.ErrNoBudget) {
			return false, err
		}
		if err == nil && slices.Contains(roots, x.Root) {
			return true, nil
		}
	}
	return false, nil
}
