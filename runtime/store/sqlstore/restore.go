package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Restore implements [store.Keeper]. It is one transaction a database; the
// budgets come first, so that nobody finds a restored thread without its budget.
// Both are on disk when it returns.
func (s *Store) Restore(ctx context.Context, threads []store.Restored) (done store.Restoration, err error) {
	err = s.ledger.WriteAsIs(ctx, Durable, func(ctx context.Context, tx *sql.Tx) (err error) {
		r := restoring{s.dialect, s.ledger, tx, nil}
		done.Budgets, err = r.budgets(ctx, threads)
		done.Refused = r.refused
		return err
	})
	if err != nil {
		return store.Restoration{}, fmt.Errorf("restore budgets: %w", err)
	}
	budgets := done.Refused
	err = s.registry.WriteAsIs(ctx, Durable, func(ctx context.Context, tx *sql.Tx) (err error) {
		r := restoring{s.dialect, s.registry, tx, nil}
		done.Threads, err = r.threads(ctx, threads)
		done.Refused = slices.Concat(budgets, r.refused)
		return err
	})
	if err != nil {
		return store.Restoration{}, fmt.Errorf("restore threads: %w", err)
	}
	return done, nil
}

// restoring adds rebuilt rows to one database.
type restoring struct {
	dialect Dialect
	in      Database
	tx      *sql.Tx
	refused []store.RefusedRow
}

// references of a thread to others. One to a thread without a row is dropped.
var threadReferences = []string{"parent_id", "continuation_of", "continuation_thread_id", "chain_root_id"}

func (r *restoring) threads(ctx context.Context, threads []store.Restored) (added int, err error) {
	if err := r.dialect.deferReferences(ctx, r.tx); err != nil {
		return 0, err
	}
	// The queue is ordered by the time of joining it.
	threads = slices.SortedStableFunc(slices.Values(threads), func(a, b store.Restored) int {
		return a.Record.QueuedAt.Compare(b.Record.QueuedAt)
	})
	add, err := r.tx.PrepareContext(ctx, restoreSQL) // it takes longer than a row does
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, add.Close()) }()
	for _, t := range threads {
		if gone, err := isGone(ctx, r.tx, t.Record.ThreadID); err != nil {
			return 0, err
		} else if gone {
			r.refused = append(r.refused, store.RefusedRow{ThreadID: t.Record.ThreadID, Err: errGone})
			continue
		}
		n, err := r.insert(ctx, t.Record.ThreadID, func() (sql.Result, error) { return insertRecord(ctx, add, t.Record) })
		if err != nil {
			return 0, err
		}
		added += n
	}
	if err := leaveQueue(ctx, r.tx); err != nil {
		return 0, err
	}
	for _, column := range threadReferences {
		if err := dropDangling(ctx, r.tx, "threads", column); err != nil {
			return 0, err
		}
	}
	return added, r.in.Restored(ctx, r.tx)
}

// leaveQueue takes those out of the queue that the thread they continue does not
// name, even where there is no row of that.
func leaveQueue(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE threads SET queued_at = NULL, queue_position = NULL, admitted_at = NULL
		WHERE status = 'created' AND NOT `+mayRun)
	return err
}

// insert counts a row that was added, and notes one that breaks a rule.
func (r *restoring) insert(ctx context.Context, id thread.ID, insert func() (sql.Result, error)) (added int, err error) {
	var res sql.Result
	if _, err = thread.ParseID(string(id)); err == nil {
		err = r.dialect.attempt(ctx, r.tx, func() (err error) {
			res, err = insert()
			return err
		})
	}
	if err != nil && r.in.BreaksRule(err) || errors.Is(err, errUnfit) || errors.Is(err, thread.ErrBadID) {
		r.refused = append(r.refused, store.RefusedRow{ThreadID: id, Err: err})
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// errUnfit says that a value is one that no row can have.
var errUnfit = errors.New("does not fit a row")

// errGone says that what is left of a deleted thread is no thread.
var errGone = errors.New("it was deleted, and what is left of it is being removed")

// insertRecord runs restoreSQL.
func insertRecord(ctx context.Context, add *sql.Stmt, rec thread.Record) (sql.Result, error) {
	var result any
	if rec.Outcome != nil {
		text, err := json.Marshal(rec.Outcome)
		if err != nil {
			return nil, fmt.Errorf("outcome %w: %w", errUnfit, err)
		}
		result = string(text)
	}
	metadata := "{}"
	if len(rec.Metadata) > 0 {
		metadata = string(rec.Metadata)
	}
	return add.ExecContext(ctx,
		orNull(rec.RequestKey), orNullTime(rec.QueuedAt), orNullTime(rec.AdmittedAt), rec.Yielded,
		rec.ThreadID, ordinalOf(rec), storedKind(rec.Kind), rec.Kind == thread.KindSet, rec.Directive, rec.Name, orNull(rec.ParentID), rec.Status,
		rec.PID, rec.Host, rec.Boot, rec.PIDNamespace, rec.Started, rec.Worker, rec.Model,
		orNull(rec.ContinuationOf), orNull(rec.ContinuationThreadID), orNull(rec.ChainRootID), result,
		rec.Cost.Turns, rec.Cost.InputTokens, rec.Cost.OutputTokens, rec.Cost.CacheReadTokens, rec.Cost.CacheWriteTokens, int64(rec.Cost.Spend),
		rec.SpawnCount, rec.TokenCount, metadata, orNull(rec.RequestHash),
		orNullTime(rec.CancelRequestedAt), millis(rec.CreatedAt), millis(rec.UpdatedAt), orNullTime(rec.CompletedAt), millis(rec.LastUsed))
}

// restoreSQL keeps the first of several rows with one request key by that key,
// and the others without it.
const restoreSQL = `INSERT INTO threads (request_key, queued_at, queue_position, admitted_at, yielded,
	thread_id, id_ordinal, kind, is_set, directive, name, parent_id, status, pid, host, boot_id, pid_namespace, pid_started, worker, model,
	continuation_of, continuation_thread_id, chain_root_id, result,
	turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, spend,
	spawn_count, token_count, metadata, request_hash,
	cancel_requested_at, created_at, updated_at, completed_at, last_used)
	VALUES ((SELECT CAST(?1 AS TEXT) WHERE NOT EXISTS (SELECT 1 FROM threads WHERE request_key = ?1)),
		?2, CASE WHEN CAST(?2 AS BIGINT) IS NOT NULL THEN ` + nextPosition + ` END, ?, ?,
		?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (thread_id) DO NOTHING`

// ordinalOf is n of the candidate that the id of a record is, or nil.
func ordinalOf(rec thread.Record) *int {
	first := string(thread.NewID(rec.Directive, rec.CreatedAt, 1))
	n := 1
	if string(rec.ThreadID) != first {
		var err error
		n, err = strconv.Atoi(strings.TrimPrefix(string(rec.ThreadID), first+"-"))
		if err != nil || n < 2 || thread.NewID(rec.Directive, rec.CreatedAt, n) != rec.ThreadID {
			return nil
		}
	}
	return &n
}

// orNullTime stores the zero time as null.
func orNullTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

// dropDangling clears what refers to no row.
func dropDangling(ctx context.Context, tx *sql.Tx, table, column string) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE %[1]s SET %[2]s = NULL WHERE %[2]s IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM %[1]s other WHERE other.thread_id = %[1]s.%[2]s)`, table, column))
	return err
}
