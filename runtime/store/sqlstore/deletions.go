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

// deletions is the part of a [Store] that takes threads away.
type deletions struct {
	registry, ledger Database
	dialect          Dialect
}

// Delete implements [store.Deletions].
func (s *deletions) Delete(ctx context.Context, sets [][]thread.ID, at time.Time) (refused []error, err error) {
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		d := deleting{tx: tx, dialect: s.dialect, set: map[thread.ID]int{}, refused: make([]error, len(sets))}
		if err := d.read(ctx, sets); err != nil {
			return err
		}
		if err := d.check(ctx); err != nil {
			return err
		}
		refused = d.refused
		return d.apply(ctx, at)
	})
	if err != nil {
		return nil, fmt.Errorf("delete threads: %w", err)
	}
	return refused, nil
}

// deleting takes sets of threads out of the registry in one transaction.
type deleting struct {
	tx      *sql.Tx
	dialect Dialect
	set     map[thread.ID]int // which set a thread is of
	rows    []thread.Record
	refused []error // by set
}

func (d *deleting) read(ctx context.Context, sets [][]thread.ID) (err error) {
	var ids []thread.ID
	for i, set := range sets {
		for _, id := range set {
			d.set[id] = i
			ids = append(ids, id)
		}
	}
	d.rows, err = scanAll(d.tx.QueryContext(ctx, "SELECT "+lightColumns+" FROM threads WHERE thread_id IN (SELECT value FROM json_each(?))", jsonList(ids)))
	return err
}

// edge says that a thread stays only if another one does.
type edge struct{ from, names thread.ID }

// check refuses the sets that cannot go: those of which a thread has not ended, and
// those that a thread which stays is below of, continues, or hands on to.
func (d *deleting) check(ctx context.Context) error {
	ids := make([]thread.ID, len(d.rows))
	for i, rec := range d.rows {
		ids[i] = rec.ThreadID
		if !rec.Status.Terminal() {
			d.refuse(rec.ThreadID, &store.NotEndedError{Thread: rec.ThreadID, State: rec.Status})
		}
	}
	rows, err := d.tx.QueryContext(ctx, `WITH going (id) AS (SELECT value FROM json_each(?))
		SELECT thread_id, parent_id FROM threads WHERE parent_id IN (SELECT id FROM going) UNION ALL
		SELECT thread_id, continuation_of FROM threads WHERE continuation_of IN (SELECT id FROM going) UNION ALL
		SELECT thread_id, continuation_thread_id FROM threads WHERE continuation_thread_id IN (SELECT id FROM going) UNION ALL
		SELECT thread_id, chain_root_id FROM threads WHERE chain_root_id IN (SELECT id FROM going)`, jsonList(ids))
	edges, err := scanEach(rows, err, func(r row) (e edge, err error) { return e, r.Scan(&e.from, &e.names) })
	if err != nil {
		return err
	}
	for again := true; again; {
		again = false
		for _, e := range edges {
			if d.goes(e.names) && !d.goes(e.from) {
				d.refuse(e.names, &store.OutsideError{Thread: e.from, Names: e.names})
				again = true
			}
		}
	}
	return nil
}

func (d *deleting) goes(id thread.ID) bool {
	i, asked := d.set[id]
	return asked && d.refused[i] == nil
}

func (d *deleting) refuse(id thread.ID, why error) {
	if i := d.set[id]; d.refused[i] == nil {
		d.refused[i] = why
	}
}

// apply moves the rows of the sets that go to the deletions.
func (d *deleting) apply(ctx context.Context, at time.Time) error {
	records := map[thread.ID]string{}
	var ids []thread.ID
	for _, rec := range d.rows {
		if !d.goes(rec.ThreadID) {
			continue
		}
		text, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		records[rec.ThreadID] = string(text)
		ids = append(ids, rec.ThreadID)
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(records)
	if err != nil {
		return err
	}
	if err := d.dialect.deferReferences(ctx, d.tx); err != nil {
		return err
	}
	// One that was restored after it was deleted has both.
	_, err = d.tx.ExecContext(ctx, `DELETE FROM deletions WHERE thread_id IN (SELECT value FROM json_each(?))`, jsonList(ids))
	if err != nil {
		return err
	}
	_, err = d.tx.ExecContext(ctx, `INSERT INTO deletions (thread_id, kind, directive, parent_id, id_ordinal, created_at, deleted_at, record)
		SELECT t.thread_id, CASE WHEN t.is_set = 1 THEN 'set' ELSE t.kind END, t.directive, t.parent_id, t.id_ordinal, t.created_at, CAST(? AS BIGINT), going.value
		FROM json_each(?) going JOIN threads t ON t.thread_id = going.key ORDER BY t.created_at, t.thread_id`, millis(at), string(list))
	if err != nil {
		return err
	}
	_, err = d.tx.ExecContext(ctx, "DELETE FROM threads WHERE thread_id IN (SELECT value FROM json_each(?))", jsonList(ids))
	return err
}

// deletionColumns is what scanDeletion reads, in its order.
const deletionColumns = "seq, thread_id, kind, directive, coalesce(parent_id, ''), created_at, deleted_at, record"

func scanDeletion(r row) (d store.Deletion, err error) {
	var record []byte
	var created, deleted int64
	rec := thread.Record{}
	if err := r.Scan(&d.Seq, &rec.ThreadID, &rec.Kind, &rec.Directive, &rec.ParentID, &created, &deleted, &record); err != nil {
		return d, err
	}
	rec.CreatedAt, d.At, d.Open = fromMillis(created), fromMillis(deleted), record != nil
	if d.Open {
		if err := json.Unmarshal(record, &rec); err != nil {
			return d, fmt.Errorf("deletion of %s: %w", rec.ThreadID, err)
		}
	}
	d.Record = rec
	return d, nil
}

// Deletions implements [store.Deletions].
func (s *deletions) Deletions(ctx context.Context, f store.DeletionFilter) (list []store.Deletion, err error) {
	query, args := "SELECT "+deletionColumns+" FROM deletions WHERE seq > ?", []any{f.After}
	if f.Open {
		query += " AND record IS NOT NULL"
	}
	if len(f.IDs) > 0 {
		query += " AND thread_id IN (SELECT value FROM json_each(?))"
		args = append(args, jsonList(f.IDs))
	}
	order := " ORDER BY seq LIMIT ?"
	if f.Newest {
		order = " ORDER BY seq DESC LIMIT ?"
	}
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, query+order, append(args, pageOrAll(f.Limit))...)
		list, err = scanEach(rows, err, scanDeletion)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list deletions: %w", err)
	}
	return list, nil
}

// pageOrAll is how many rows a limit means.
func pageOrAll(limit int) int {
	if limit <= 0 {
		return store.MaxPage
	}
	return min(limit, store.MaxPage)
}

// deletedOr is err, or that the thread was deleted where err says that there is none. It
// is asked in the rare case alone.
func (s *deletions) deletedOr(ctx context.Context, err error, id thread.ID) error {
	if id == "" || !errors.Is(err, thread.ErrNotFound) {
		return err
	}
	if gone, listErr := s.Deletions(ctx, store.DeletionFilter{IDs: []thread.ID{id}}); listErr == nil && len(gone) > 0 {
		return &thread.DeletedError{ID: id, At: gone[0].At}
	}
	return err
}

// EndDeletions implements [store.Deletions]. It is not waited to disk: what a loss of
// power takes back is found to be done.
func (s *deletions) EndDeletions(ctx context.Context, ids []thread.ID) error {
	err := s.registry.Write(ctx, Relaxed, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE deletions SET record = NULL
			WHERE record IS NOT NULL AND thread_id IN (SELECT value FROM json_each(?))`, jsonList(ids))
		return err
	})
	if err != nil {
		return fmt.Errorf("end deletions: %w", err)
	}
	return nil
}

// ShowPlan implements [store.Deletions].
func (s *deletions) ShowPlan(ctx context.Context, key string, p store.ShownPlan) error {
	err := s.registry.Write(ctx, Relaxed, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM shown_plans WHERE abs(shown_at - ?) > ?", millis(p.At), store.PlanKept.Milliseconds()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO shown_plans (plan_key, digest, shown_at) VALUES (?, ?, ?)
			ON CONFLICT (plan_key) DO UPDATE SET digest = excluded.digest, shown_at = excluded.shown_at`, key, p.Digest, millis(p.At))
		return err
	})
	if err != nil {
		return fmt.Errorf("record what a dry run has told: %w", err)
	}
	return nil
}

// ShownPlan implements [store.Deletions].
func (s *deletions) ShownPlan(ctx context.Context, key string, now time.Time) (*store.ShownPlan, error) {
	var p store.ShownPlan
	var at int64
	err := s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT digest, shown_at FROM shown_plans WHERE plan_key = ?", key).Scan(&p.Digest, &at)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for what a dry run has told: %w", err)
	}
	if p.At = fromMillis(at); now.Sub(p.At).Abs() > store.PlanKept {
		return nil, nil
	}
	return &p, nil
}
