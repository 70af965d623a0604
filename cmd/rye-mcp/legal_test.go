package main_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// settled checks that every thread below a state folder has ended and that
// ledger, registry and folders agree about each. The error names everything
// that is wrong.
func settled(ctx context.Context, state string) (err error) {
	st, err := sqlite.Open(ctx, state, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	rows, err := allRows(ctx, st)
	if err != nil {
		return err
	}
	var wrong []error
	for _, rec := range rows {
		if err := errors.Join(rowSettled(ctx, st, rec), messagesCounted(ctx, st, rec), filesAgree(state, rec)); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", rec.ThreadID, err))
		}
	}
	return errors.Join(append(wrong, treesAddUp(ctx, st, rows))...)
}

// allRows reads the whole registry, newest first.
func allRows(ctx context.Context, st store.Registry) (rows []thread.Record, err error) {
	err = store.EachRow(ctx, st, nil, func(rec thread.Record) error {
		rows = append(rows, rec)
		return nil
	})
	return rows, err
}

// rowSettled checks a row and its budget.
func rowSettled(ctx context.Context, st store.Store, rec thread.Record) error {
	if !rec.Status.Terminal() {
		return fmt.Errorf("is %s", rec.Status)
	}
	if rec.Outcome == nil || rec.CompletedAt.IsZero() {
		return errors.New("has ended without an outcome or a time")
	}
	budget, err := st.Budget(ctx, rec.ThreadID)
	if errors.Is(err, store.ErrNoBudget) {
		return nil // it failed before it had one
	}
	if err != nil {
		return err
	}
	switch {
	case budget.Active || budget.Reserved != 0:
		return fmt.Errorf("its budget is not settled: %+v", budget)
	case budget.Own != rec.Cost.Spend:
		return fmt.Errorf("the ledger has %s of its own, the registry %s", budget.Own, rec.Cost.Spend)
	case budget.Actual > budget.MaxSpend:
		return fmt.Errorf("it has spent more than it had: %+v", budget)
	}
	return nil
}

// messagesCounted checks that as many messages are unread as the row of a thread says.
func messagesCounted(ctx context.Context, st store.Store, rec thread.Record) error {
	unread, err := st.Unread(ctx, rec.ThreadID)
	if err == nil && len(unread) != rec.Unread {
		err = fmt.Errorf("%d messages are unread, and its row says %d", len(unread), rec.Unread)
	}
	return err
}

// treesAddUp checks that what a root has spent is the sum of what each thread
// below it has, and its own, and what the deleted below it had.
func treesAddUp(ctx context.Context, st store.Store, rows []thread.Record) error {
	gone, err := st.Gone(ctx)
	if err != nil {
		return err
	}
	own, parents := map[thread.ID]thread.Micros{}, map[thread.ID]thread.ID{}
	for _, rec := range rows {
		parents[rec.ThreadID] = rec.ParentID
	}
	for _, rec := range rows {
		root := rec.ThreadID
		for parents[root] != "" {
			root = parents[root]
		}
		own[root] += rec.Cost.Spend + gone.Spent[rec.ThreadID]
	}
	var wrong []error
	for root, sum := range own {
		budget, err := st.Budget(ctx, root)
		if errors.Is(err, store.ErrNoBudget) && sum == 0 {
			continue
		}
		if err != nil || budget.Actual != sum {
			wrong = append(wrong, fmt.Errorf("%s and those below have spent %s, its ledger says %s (%w)", root, sum, budget.Actual, err))
		}
	}
	return errors.Join(wrong...)
}

// filesAgree checks the folder of a thread that has ended. One that died while
// it was started may have no thread.json.
func filesAgree(state string, rec thread.Record) error {
	dir := folder.Of(state, rec.ThreadID)
	meta, err := dir.PeekMeta()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if meta.Status != rec.Status || meta.Cost != rec.Cost {
		return fmt.Errorf("thread.json says %s for %+v, the registry %s for %+v", meta.Status, meta.Cost, rec.Status, rec.Cost)
	}
	outcome, _, err := transcript.LastOutcome(records.File(dir.Transcript()))
	if err != nil || outcome == nil || outcome.State != rec.Status {
		return fmt.Errorf("the transcript ends with %+v (%w)", outcome, err)
	}
	_, err = transcript.Verify(records.File(dir.Transcript()), nil, meta.Transcript)
	return err
}

// locksFree checks that nobody holds a life lock below a state folder.
func locksFree(state string) error {
	return filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(d.Name(), ".lock") || filepath.Dir(path) == state {
			return err
		}
		held, err := process.Held(path)
		if err == nil && held {
			err = fmt.Errorf("%s is held", path)
		}
		return err
	})
}
