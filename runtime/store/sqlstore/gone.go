package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ForgetBudgets implements [store.Deletions]. It is on disk when it returns.
func (s *deletions) ForgetBudgets(ctx context.Context, ids []thread.ID, at time.Time) error {
	err := s.ledger.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, selectBudget+" WHERE thread_id IN (SELECT value FROM json_each(?))"+s.dialect.untilCommit(), jsonList(ids))
		budgets, err := scanEach(rows, err, func(r row) (store.Budget, error) { return scanBudget(r) })
		if err != nil || len(budgets) == 0 {
			return err
		}
		for _, b := range budgets {
			if b.Active { // its thread has ended, and a crash kept the two apart
				if err := settle(ctx, tx, b.ThreadID, millis(at)); err != nil {
					return err
				}
			}
		}
		return s.foldBudgets(ctx, tx, budgets)
	})
	if err != nil {
		return fmt.Errorf("forget budgets: %w", err)
	}
	return nil
}

// foldBudgets deletes rows that are settled, and counts what they came to with those
// above them that stay. Nothing else of these changes: actual_spend has it already.
func (s *deletions) foldBudgets(ctx context.Context, tx *sql.Tx, budgets []store.Budget) error {
	going := make(map[thread.ID]store.Budget, len(budgets))
	ids := make([]thread.ID, len(budgets))
	for i, b := range budgets {
		going[b.ThreadID], ids[i] = b, b.ThreadID
	}
	folded := map[thread.ID]int64{}
	for _, b := range budgets {
		above := b.ParentID
		for range budgets { // a circle ends
			next, goes := going[above]
			if !goes {
				break
			}
			above = next.ParentID
		}
		if _, goes := going[above]; above != "" && !goes {
			folded[above] += int64(b.Own + b.Gone)
		}
	}
	if err := s.dialect.deferReferences(ctx, tx); err != nil {
		return err
	}
	sums, err := json.Marshal(folded)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, `UPDATE budgets SET gone_spend = gone_spend + CAST(s.value AS BIGINT)
		FROM json_each(?) s WHERE s.key = budgets.thread_id`, string(sums)); err != nil {
		return err
	}
	// A row that stays below one that goes, which no whole set leaves, becomes a root.
	for _, query := range []string{
		`UPDATE budgets SET parent_id = NULL WHERE parent_id IN (SELECT value FROM json_each(?1)) AND thread_id NOT IN (SELECT value FROM json_each(?1))`,
		`UPDATE budgets SET successor_id = NULL WHERE successor_id IN (SELECT value FROM json_each(?1)) AND thread_id NOT IN (SELECT value FROM json_each(?1))`,
		`DELETE FROM budgets WHERE thread_id IN (SELECT value FROM json_each(?1))`,
	} {
		if _, err := tx.ExecContext(ctx, query, jsonList(ids)); err != nil {
			return err
		}
	}
	return nil
}

// goneKept is how many of the deleted, of whom nothing is left, are told outside the
// store: a database that is lost forgets the others.
const goneKept = 1000

// Gone implements [store.Deletions].
func (s *deletions) Gone(ctx context.Context) (g store.Gone, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		g = store.Gone{Spent: map[thread.ID]thread.Micros{}, Days: map[int64]thread.Micros{}}
		rows, err := db.QueryContext(ctx, `SELECT thread_id, kind, directive, created_at, deleted_at, record IS NOT NULL FROM deletions
			WHERE record IS NOT NULL OR seq > (SELECT max(seq) FROM deletions) - ? ORDER BY seq`, goneKept)
		g.Threads, err = scanEach(rows, err, func(r row) (t store.GoneThread, err error) {
			var created, deleted int64
			err = r.Scan(&t.ID, &t.Kind, &t.Directive, &created, &deleted, &t.Open)
			t.CreatedAt, t.DeletedAt = fromMillis(created), fromMillis(deleted)
			return t, err
		})
		if err != nil {
			return err
		}
		return readSums(ctx, db, "SELECT day, gone FROM days WHERE gone > 0", g.Days)
	})
	if err == nil {
		err = s.ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
			return readSums(ctx, db, "SELECT thread_id, gone_spend FROM budgets WHERE gone_spend > 0", g.Spent)
		})
	}
	if err != nil {
		return store.Gone{}, fmt.Errorf("what was deleted: %w", err)
	}
	return g, nil
}

func readSums[K comparable](ctx context.Context, db *sql.DB, query string, into map[K]thread.Micros) error {
	type sum struct {
		key    K
		amount int64
	}
	rows, err := db.QueryContext(ctx, query)
	sums, err := scanEach(rows, err, func(r row) (one sum, err error) { return one, r.Scan(&one.key, &one.amount) })
	for _, one := range sums {
		into[one.key] = thread.Micros(one.amount)
	}
	return err
}

// RestoreGone implements [store.Deletions]. It is on disk when it returns.
func (s *deletions) RestoreGone(ctx context.Context, g store.Gone) error {
	err := s.registry.WriteAsIs(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		for day, spent := range g.Days {
			_, err := tx.ExecContext(ctx, `INSERT INTO days (day, spend, gone) VALUES (?1, ?2, ?2)
				ON CONFLICT (day) DO UPDATE SET
				spend = days.spend + CASE WHEN days.gone < ?2 THEN ?2 - days.gone ELSE 0 END, gone = CASE WHEN days.gone < ?2 THEN ?2 ELSE days.gone END`, day, int64(spent))
			if err != nil {
				return err
			}
		}
		for _, t := range g.Threads {
			if err := restoreDeletion(ctx, tx, t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore what was deleted: %w", err)
	}
	return nil
}

// restoreDeletion remembers a thread as deleted that there is no row of.
func restoreDeletion(ctx context.Context, tx *sql.Tx, t store.GoneThread) error {
	rec := thread.Record{ThreadID: t.ID, Kind: t.Kind, Directive: t.Directive, CreatedAt: t.CreatedAt}
	if !isSound(t) {
		return nil
	}
	var record any
	if t.Open {
		text, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		record = string(text)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO deletions (thread_id, kind, directive, id_ordinal, created_at, deleted_at, record)
		SELECT CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS BIGINT), CAST(?5 AS BIGINT), CAST(?6 AS BIGINT), CAST(?7 AS TEXT)
		WHERE NOT EXISTS (SELECT 1 FROM threads WHERE thread_id = ?1)
		ON CONFLICT (thread_id) DO NOTHING`,
		t.ID, t.Kind, t.Directive, ordinalOf(rec), millis(t.CreatedAt), millis(t.DeletedAt), record)
	return err
}

// isSound reports whether this program can have written what is told of a deleted thread.
func isSound(t store.GoneThread) bool {
	_, err := thread.ParseID(string(t.ID))
	return err == nil && t.CreatedAt.UnixMilli() > 0 && t.DeletedAt.UnixMilli() > 0
}

// isGone reports whether a thread was deleted and something of it may be left.
func isGone(ctx context.Context, q rowQuerier, id thread.ID) (gone bool, err error) {
	err = q.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM deletions WHERE thread_id = ? AND record IS NOT NULL)", id).Scan(&gone)
	return gone, err
}
