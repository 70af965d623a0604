package sqlstore

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// columns is what scanStored reads, in its order. In lightColumns the outcome is left out,
// which can be megabytes.
const (
	columns      = columnsBefore + "result" + columnsAfter
	lightColumns = columnsBefore + "NULL" + columnsAfter

	columnsBefore = `thread_id, CASE WHEN is_set = 1 THEN 'set' ELSE kind END, directive, name, coalesce(parent_id, ''), status, run,
	pid, host, boot_id, pid_namespace, pid_started, worker, model,
	coalesce(continuation_of, ''), coalesce(continuation_thread_id, ''), coalesce(chain_root_id, ''), `
	columnsAfter = `,
	turns, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, spend,
	spawn_count, token_count, coalesce(request_key, ''), coalesce(request_hash, ''), metadata,
	coalesce(queued_at, 0), coalesce(admitted_at, 0), yielded, unread,
	coalesce(cancel_requested_at, 0), coalesce(handoff_asked_at, 0), created_at, updated_at, coalesce(completed_at, 0), last_used, coalesce(retry_at, 0), coalesce(retry_note, '')`
)

// Size implements [Sized].
func (s storedRecord) Size() int { return len(s.result) + len(s.metadata) }

// row is a *sql.Row or *sql.Rows.
type row interface{ Scan(...any) error }

// storedRecord is a row as it was read. Its outcome is still JSON, and decoded
// for each caller, so that nobody gets what another can change.
type storedRecord struct {
	rec              thread.Record // without the two that follow
	result, metadata []byte
}

func (s storedRecord) record() (thread.Record, error) {
	rec := s.rec
	rec.Metadata = bytes.Clone(s.metadata)
	if s.result == nil {
		return rec, nil
	}
	rec.Outcome = new(thread.Outcome)
	if err := json.Unmarshal(s.result, rec.Outcome); err != nil {
		return thread.Record{}, fmt.Errorf("result of %s: %w", rec.ThreadID, err)
	}
	return rec, nil
}

func scanRecord(r row) (thread.Record, error) {
	stored, err := scanStored(r)
	if err != nil {
		return thread.Record{}, err
	}
	return stored.record()
}

func scanStored(r row) (storedRecord, error) {
	var (
		s                                            storedRecord
		queued, admitted, handoff                    int64
		cancelled, created, updated, completed, used int64
		retry                                        int64
	)
	rec := &s.rec
	err := r.Scan(&rec.ThreadID, &rec.Kind, &rec.Directive, &rec.Name, &rec.ParentID, &rec.Status, &rec.Run,
		&rec.PID, &rec.Host, &rec.Boot, &rec.PIDNamespace, &rec.Started, &rec.Worker, &rec.Model,
		&rec.ContinuationOf, &rec.ContinuationThreadID, &rec.ChainRootID, &s.result,
		&rec.Cost.Turns, &rec.Cost.InputTokens, &rec.Cost.OutputTokens, &rec.Cost.CacheReadTokens, &rec.Cost.CacheWriteTokens, &rec.Cost.Spend,
		&rec.SpawnCount, &rec.TokenCount, &rec.RequestKey, &rec.RequestHash, &s.metadata,
		&queued, &admitted, &rec.Yielded, &rec.Unread,
		&cancelled, &handoff, &created, &updated, &completed, &used, &retry, &rec.RetryNote)
	if err != nil {
		return storedRecord{}, err
	}
	rec.QueuedAt = fromMillis(queued)
	rec.AdmittedAt = fromMillis(admitted)
	rec.CancelRequestedAt = fromMillis(cancelled)
	rec.HandoffAskedAt = fromMillis(handoff)
	rec.CreatedAt = fromMillis(created)
	rec.UpdatedAt = fromMillis(updated)
	rec.CompletedAt = fromMillis(completed)
	rec.LastUsed = fromMillis(used)
	rec.RetryAt = fromMillis(retry)
	return s, nil
}

// scanAll reads every row and closes rows. It takes the results of a query, so
// that the query's error needs no check of its own.
func scanAll(rows *sql.Rows, err error) ([]thread.Record, error) {
	return scanEach(rows, err, scanRecord)
}

// scanEach is scanAll for rows of any kind.
func scanEach[T any](rows *sql.Rows, err error, scan func(row) (T, error)) (list []T, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below reports what the iteration met
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// notFound names the thread when a query for it found no row.
func notFound(err error, id thread.ID) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("thread %s: %w", id, thread.ErrNotFound)
	}
	return err
}

// millis is the stored form of a time that is set.
func millis(t time.Time) int64 { return t.UnixMilli() }

// fromMillis reads a stored time; 0 is the zero time.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// orNull stores the empty string as null.
func orNull[S ~string](s S) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// jsonList passes a list to SQL as one parameter, to be read with json_each.
func jsonList[T ~string | ~int64](list []T) string {
	if len(list) == 0 {
		return "[]" // and not null
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic("bug; texts and numbers always encode: " + err.Error())
	}
	return string(b)
}
