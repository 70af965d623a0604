package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Mender is what of a [store.Mender] concerns rows. An engine adds what becomes of files.
type Mender struct{ *Store }

// relateSQL leaves out who has no row.
const relateSQL = `UPDATE threads SET
	parent_id = (SELECT thread_id FROM threads WHERE thread_id = ?1),
	continuation_of = (SELECT thread_id FROM threads WHERE thread_id = ?2),
	continuation_thread_id = (SELECT thread_id FROM threads WHERE thread_id = ?3),
	chain_root_id = (SELECT thread_id FROM threads WHERE thread_id = ?4)
	WHERE thread_id = ?5 AND parent_id IS NOT DISTINCT FROM ?6 AND continuation_of IS NOT DISTINCT FROM ?7
		AND continuation_thread_id IS NOT DISTINCT FROM ?8 AND chain_root_id IS NOT DISTINCT FROM ?9`

// Relate implements [store.Mender].
func (s Mender) Relate(ctx context.Context, id thread.ID, was, now store.Relatives) (changed bool, err error) {
	changed, err = change(ctx, s.registry, Durable, relateSQL,
		orNull(now.Parent), orNull(now.ContinuationOf), orNull(now.ContinuedBy), orNull(now.ChainRoot), id,
		orNull(was.Parent), orNull(was.ContinuationOf), orNull(was.ContinuedBy), orNull(was.ChainRoot))
	if err != nil {
		return false, fmt.Errorf("relate %s: %w", id, err)
	}
	return changed, nil
}

// correctSQL changes only what has ended, which nothing else does, or what the run of the
// caller has and never ran; and not to what it is already.
const correctSQL = `UPDATE threads SET kind = ?1, directive = ?2, status = ?3, result = ?4,
	turns = ?5, input_tokens = ?6, output_tokens = ?7, cache_read_tokens = ?8, cache_write_tokens = ?9, spend = ?10,
	completed_at = coalesce(completed_at, ?13), ` + newWrite + `
	WHERE thread_id = ?11 AND (status NOT IN ('created', 'running') OR status = 'created' AND run = ?12 AND run <> '') AND (kind, directive, status, result,
		turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, spend) IS DISTINCT FROM (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`

// Correct implements [store.Mender].
func (s Mender) Correct(ctx context.Context, rec thread.Record) (changed bool, err error) {
	if rec.Outcome == nil || rec.Outcome.State != rec.Status || !rec.Status.Terminal() {
		return false, fmt.Errorf("correct %s: %s is no end", rec.ThreadID, rec.Status)
	}
	result, err := json.Marshal(rec.Outcome)
	if err == nil {
		changed, err = change(ctx, s.registry, Durable, correctSQL, rec.Kind, rec.Directive, rec.Status, string(result),
			rec.Cost.Turns, rec.Cost.InputTokens, rec.Cost.OutputTokens, rec.Cost.CacheReadTokens, rec.Cost.CacheWriteTokens,
			int64(rec.Cost.Spend), rec.ThreadID, rec.Run, millis(rec.UpdatedAt))
	}
	if err != nil {
		return false, fmt.Errorf("correct %s: %w", rec.ThreadID, err)
	}
	return changed, nil
}

// MarkGone implements [store.Mender]. Of several who note the same the first one's time
// stays. Metadata is changed here, and not by SQL, so that it stays as it was written
// but for the note.
func (s Mender) MarkGone(ctx context.Context, id thread.ID, since time.Time) (changed bool, err error) {
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		changed = false
		query := "SELECT metadata FROM threads WHERE thread_id = ?"
		if !since.IsZero() {
			query += " AND status NOT IN ('created', 'running')"
		}
		var metadata []byte
		err := tx.QueryRowContext(ctx, query, id).Scan(&metadata)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		noted, differs, err := noteGone(metadata, since)
		if err != nil || !differs {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE threads SET metadata = ? WHERE thread_id = ?", string(noted), id)
		changed = err == nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("mark %s: %w", id, err)
	}
	return changed, nil
}

// noteGone is metadata with the note of MarkGone, or without it; differs says that it was
// the other way.
func noteGone(metadata []byte, since time.Time) (noted []byte, differs bool, err error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(metadata, &members); err != nil {
		return nil, false, err
	}
	if _, has := members[thread.MetadataRecordsGone]; has != since.IsZero() {
		return nil, false, nil
	}
	delete(members, thread.MetadataRecordsGone)
	if !since.IsZero() {
		members[thread.MetadataRecordsGone] = json.RawMessage(`"` + since.UTC().Format(time.RFC3339) + `"`)
	}
	return []byte(asKept(members)), true, nil
}

// Budgets implements [store.Mender].
func (s Mender) Budgets(ctx context.Context, ids []thread.ID) (found map[thread.ID]store.Budget, err error) {
	err = s.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, selectBudget+" WHERE thread_id IN (SELECT value FROM json_each(?))", jsonList(ids))
		list, err := scanEach(rows, err, func(r row) (store.Budget, error) { return scanBudget(r) })
		found = make(map[thread.ID]store.Budget, len(list))
		for _, b := range list {
			found[b.ThreadID] = b
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("budgets: %w", err)
	}
	return found, nil
}

// Release implements [store.Mender].
func (s Mender) Release(ctx context.Context, id thread.ID, at time.Time) (changed bool, err error) {
	if _, err := s.Get(ctx, id); !errors.Is(err, thread.ErrNotFound) {
		return false, err
	}
	err = s.ledger.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		changed = false
		b, err := scanBudget(tx.QueryRowContext(ctx, budgetSQL, id))
		if errors.Is(err, sql.ErrNoRows) || err == nil && !b.Active {
			return nil
		}
		if err == nil {
			err = settle(ctx, tx, id, millis(at))
		}
		changed = err == nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("release the budget of %s: %w", id, err)
	}
	return changed, nil
}

// Recount implements [store.Mender].
func (s Mender) Recount(ctx context.Context, id thread.ID, was, own thread.Micros) (changed bool, err error) {
	if own < 0 || own > maxAmount {
		return false, fmt.Errorf("recount the budget of %s: %s %w", id, own, errUnfit)
	}
	err = s.ledger.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		changed, err = changeIn(ctx, tx, `UPDATE budgets SET actual_spend = ?1 + CASE WHEN actual_spend > own_spend THEN actual_spend - own_spend ELSE 0 END, own_spend = ?1
			WHERE thread_id = ?2 AND status = 'settled' AND own_spend = ?3 AND own_spend <> ?1`, int64(own), id, int64(was))
		if err != nil || !changed {
			return err
		}
		_, err = sumBudgets(ctx, tx, s.dialect)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("recount the budget of %s: %w", id, err)
	}
	return changed, nil
}

// Miscounted implements [store.Mender].
func (s Mender) Miscounted(ctx context.Context) (off []thread.ID, err error) {
	err = s.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := allBudgets(ctx, db, "")
		if err != nil {
			return err
		}
		wrong, circular := miscounted(rows)
		off = circular
		for _, b := range wrong {
			off = append(off, b.ThreadID)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add up the budgets: %w", err)
	}
	return off, nil
}

// AddUp implements [store.Mender].
func (s Mender) AddUp(ctx context.Context) (changed bool, err error) {
	err = s.ledger.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) (err error) {
		changed, err = sumBudgets(ctx, tx, s.dialect)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("add up the budgets: %w", err)
	}
	return changed, nil
}
