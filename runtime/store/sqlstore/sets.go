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

// waiting is the condition of the partial index, word for word.
const waiting = `started_at IS NULL AND refused IS NULL`

// setSQL counts what works by the children of the set: a thread that continues another
// has the same parent.
const setSQL = `SELECT s.set_id, s.scope, s.content, s.concurrency,
	(SELECT count(*) FROM set_entries e WHERE e.set_id = s.set_id),
	(SELECT count(*) FROM set_entries e WHERE e.set_id = s.set_id AND ` + waiting + `),
	(SELECT count(*) FROM set_entries e WHERE e.set_id = s.set_id AND e.reused = 1),
	` + workingSQL + `, ` + retryingSQL + ` FROM sets s `

// workingSQL goes by the threads that have not ended, not by all that a set has had.
const workingSQL = `(SELECT count(*) FROM threads c INDEXED BY threads_status
	WHERE c.status IN ('created', 'running') AND c.parent_id = s.set_id)`

// retryingSQL counts what is to be tried again.
const retryingSQL = `(SELECT count(*) FROM threads c INDEXED BY threads_retry WHERE c.retry_at IS NOT NULL AND c.parent_id = s.set_id)`

func scanSet(r row) (s store.Set, err error) {
	err = r.Scan(&s.ID, &s.Scope, &s.Content, &s.Concurrency, &s.Items, &s.Waiting, &s.Reused, &s.Working, &s.Retrying)
	return s, err
}

// sets is the [store.Sets] of a store.
type sets struct{ store *Store }

// OpenSet implements [store.Sets]. It is on disk when it returns.
func (s sets) OpenSet(ctx context.Context, id thread.ID, run thread.Run, n store.NewSet, at time.Time) (rec thread.Record, err error) {
	by := &runner{s.store, id, run}
	query, args, err := by.changeSQL(store.Claimed(id, thread.Process{}, at))
	if err != nil {
		return thread.Record{}, fmt.Errorf("open set %s: %w", id, err)
	}
	err = s.store.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		rec, err = scanRecord(tx.QueryRowContext(ctx, query, args...))
		if errors.Is(err, sql.ErrNoRows) {
			return by.refused(ctx, tx, thread.Running)
		}
		if err != nil {
			return err
		}
		n.Scope = s.store.dialect.scope(n.Scope)
		return insertSet(ctx, tx, id, n, at)
	})
	if err != nil {
		return thread.Record{}, fmt.Errorf("open set %s: %w", id, err)
	}
	return rec, nil
}

func insertSet(ctx context.Context, tx *sql.Tx, id thread.ID, n store.NewSet, at time.Time) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO sets (set_id, scope, content, concurrency) VALUES (?, ?, ?, ?)",
		id, n.Scope, n.Content, n.Concurrency)
	if err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO set_entries (set_id, position, entry_key, inputs, thread_id, started_at, reused)
		VALUES (?, ?, ?, ?, (SELECT thread_id FROM threads WHERE thread_id = ?), ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // ends with the transaction
	for i, e := range n.Entries {
		var started any
		if e.Done != "" {
			started = millis(at)
		}
		if _, err := insert.ExecContext(ctx, id, i, e.Key, string(e.Inputs), orNull(e.Done), started, e.Done != ""); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}

// takeEntry links an entry of a set to the thread that was just inserted for it, in
// whose transaction it is.
func takeEntry(ctx context.Context, tx *sql.Tx, n store.NewThread) error {
	if n.Entry == 0 {
		return nil
	}
	changed, err := changeIn(ctx, tx, `UPDATE set_entries SET thread_id = ?1, started_at = ?2, entry_key = ?3
		WHERE set_id = ?4 AND position = ?5 AND `+waiting+` AND
		EXISTS (SELECT 1 FROM sets s WHERE s.set_id = ?4 AND `+workingSQL+` <= s.concurrency)`,
		n.ID, millis(n.Now), n.EntryKey, n.ParentID, n.Entry-1)
	if err == nil && !changed {
		err = fmt.Errorf("entry %d of %s: %w", n.Entry-1, n.ParentID, store.ErrEntryTaken)
	}
	return err
}

// Set implements [store.Sets].
func (s sets) Set(ctx context.Context, id thread.ID) (store.Set, error) {
	return s.oneSet(ctx, "WHERE s.set_id = ?", id)
}

// LastSet implements [store.Sets].
func (s sets) LastSet(ctx context.Context, scope, content string) (store.Set, error) {
	const last = ` ORDER BY (SELECT created_at FROM threads t WHERE t.thread_id = s.set_id) DESC, s.rowid DESC LIMIT 1`
	scope = s.store.dialect.scope(scope)
	if content == "" {
		return s.oneSet(ctx, "WHERE s.scope = ?"+last, scope)
	}
	return s.oneSet(ctx, "WHERE s.scope = ? AND s.content = ?"+last, scope, content)
}

func (s sets) oneSet(ctx context.Context, where string, args ...any) (set store.Set, err error) {
	err = s.store.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		set, err = scanSet(db.QueryRowContext(ctx, setSQL+where, args...))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNoSet
	}
	if err != nil {
		return store.Set{}, fmt.Errorf("set: %w", err)
	}
	return set, nil
}

// Working implements [store.Sets].
func (s sets) Working(ctx context.Context) (ids []thread.ID, err error) {
	err = s.store.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SELECT thread_id FROM threads INDEXED BY threads_sets
			WHERE is_set = 1 AND status = 'running' ORDER BY created_at, thread_id`)
		ids, err = scanEach(rows, err, func(r row) (id thread.ID, err error) {
			err = r.Scan(&id)
			return id, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("running sets: %w", err)
	}
	return ids, nil
}

// lastOf follows the threads of entries to the end of their chains. UNION drops what it
// has seen, so a circle ends.
const (
	withEntries = `WITH RECURSIVE entries AS (`
	lastOf      = `), chain (set_id, position, thread_id, next) AS (
	SELECT e.set_id, e.position, t.thread_id, t.continuation_thread_id FROM entries e JOIN threads t ON t.thread_id = e.thread_id
	UNION SELECT c.set_id, c.position, t.thread_id, t.continuation_thread_id FROM chain c JOIN threads t ON t.thread_id = c.next) `
)

const entriesSQL = withEntries + "SELECT * FROM set_entries WHERE set_id = ? AND position >= ? ORDER BY position LIMIT ?" + lastOf +
	`SELECT e.position, e.entry_key, coalesce(e.started_at, 0), e.reused, e.refused, coalesce(e.thread_id, ''),
	coalesce(t.thread_id, ''), coalesce(t.status, ''), t.retry_at IS NOT NULL
	FROM entries e LEFT JOIN chain c ON c.position = e.position AND c.next IS NULL LEFT JOIN threads t ON t.thread_id = c.thread_id
	ORDER BY e.position`

// Entries implements [store.Sets].
func (s sets) Entries(ctx context.Context, id thread.ID, from, most int) (list []store.Entry, err error) {
	err = s.store.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, entriesSQL, id, from, most)
		list, err = scanEach(rows, err, scanEntry)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("entries of %s: %w", id, err)
	}
	return list, nil
}

func scanEntry(r row) (e store.Entry, err error) {
	var started int64
	var refused []byte
	err = r.Scan(&e.Position, &e.Key, &started, &e.Reused, &refused, &e.Thread, &e.Last, &e.Status, &e.Retries)
	e.StartedAt = fromMillis(started)
	if err == nil && refused != nil {
		e.Refused = new(thread.Problem)
		err = json.Unmarshal(refused, e.Refused)
	}
	return e, err
}

// NextEntry implements [store.Sets].
func (s sets) NextEntry(ctx context.Context, id thread.ID) (e store.Entry, waits bool, err error) {
	err = s.store.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		var inputs []byte
		err := db.QueryRowContext(ctx, `SELECT position, entry_key, inputs FROM set_entries
			WHERE set_id = ? AND `+waiting+` ORDER BY position LIMIT 1`, id).Scan(&e.Position, &e.Key, &inputs)
		e.Inputs = inputs
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return store.Entry{}, false, nil
	}
	if err != nil {
		return store.Entry{}, false, fmt.Errorf("next entry of %s: %w", id, err)
	}
	return e, true, nil
}

// RefuseEntry implements [store.Sets]. The set goes on with the next one when it returns.
func (s sets) RefuseEntry(ctx context.Context, id thread.ID, position int, why thread.Problem, at time.Time) error {
	text, err := json.Marshal(why)
	if err == nil {
		err = s.store.registry.Write(ctx, Relaxed, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE set_entries SET refused = ? WHERE set_id = ? AND position = ? AND `+waiting,
				string(text), id, position)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "UPDATE threads SET updated_at = ? WHERE thread_id = ? AND status = 'running'", millis(at), id)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("refuse entry %d of %s: %w", position, id, err)
	}
	return nil
}

const completedSQL = withEntries + `SELECT e.set_id, e.position, e.entry_key, e.thread_id, e.started_at FROM set_entries e
	JOIN sets s ON s.set_id = e.set_id WHERE s.scope = ? AND e.thread_id IS NOT NULL AND e.entry_key IN (SELECT value FROM json_each(?))` + lastOf +
	`SELECT e.entry_key, e.thread_id FROM entries e
	JOIN chain c ON c.set_id = e.set_id AND c.position = e.position AND c.next IS NULL
	JOIN threads t ON t.thread_id = c.thread_id WHERE t.status = 'completed' ORDER BY e.started_at`

// Completed implements [store.Sets].
func (s sets) Completed(ctx context.Context, scope string, keys []string) (done map[string]thread.ID, err error) {
	type entry struct {
		key string
		id  thread.ID
	}
	var list []entry
	scope = s.store.dialect.scope(scope)
	err = s.store.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, completedSQL, scope, jsonList(keys))
		list, err = scanEach(rows, err, func(r row) (e entry, err error) {
			err = r.Scan(&e.key, &e.id)
			return e, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("completed entries: %w", err)
	}
	done = make(map[string]thread.ID, len(list))
	for _, e := range list {
		done[e.key] = e.id
	}
	return done, nil
}
