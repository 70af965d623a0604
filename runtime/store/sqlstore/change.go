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

// sourceStates guards a change of state: its parameter is thread.Sources of the
// new state, so that the transition table stays in one place.
const sourceStates = `status IN (SELECT value FROM json_each(?))`

// newWrite: each statement that changes status, process or run of a row counts itself,
// which older versions do not: the database refuses theirs for a run of today's.
const newWrite = `writes = writes + 1`

// claimSQL also refuses a thread whose cancel is on record, and one that the
// thread it continues does not name.
const claimSQL = `UPDATE threads SET status = ?, pid = ?, host = ?, boot_id = ?, pid_namespace = ?,
	pid_started = ?, worker = ?, updated_at = ?, last_used = ?, run = ?, ` + newWrite + `
	WHERE thread_id = ? AND ` + ownRun + ` AND ` + sourceStates + ` AND cancel_requested_at IS NULL AND ` + mayRun + ` RETURNING ` + columns

// finishSQL keeps the recorded cost where its parameter is null.
const finishSQL = `UPDATE threads SET status = ?, result = ?, completed_at = ?, updated_at = ?, last_used = ?,
	turns = coalesce(?, turns), input_tokens = coalesce(?, input_tokens), output_tokens = coalesce(?, output_tokens),
	cache_read_tokens = coalesce(?, cache_read_tokens), cache_write_tokens = coalesce(?, cache_write_tokens),
	spend = coalesce(?, spend), retry_at = CASE WHEN cancel_requested_at IS NULL THEN CAST(? AS BIGINT) END, run = ?, ` + newWrite + `
	WHERE thread_id = ? AND ` + ownRun + ` AND ` + sourceStates + ` RETURNING ` + columns

// Apply implements [store.Runner]. The change is on disk when it returns.
func (r *runner) Apply(ctx context.Context, c store.Change) (rec thread.Record, err error) {
	if c.ID() != r.id {
		return thread.Record{}, fmt.Errorf("apply change: it is one of %s, and the runner that of %s", c.ID(), r.id)
	}
	query, args, err := r.changeSQL(c)
	if err != nil {
		return thread.Record{}, fmt.Errorf("apply change: %w", err)
	}
	attempts := 0
	err = r.writeFrom(repeatable(ctx), Durable, query, args, func(ctx context.Context, tx *sql.Tx, changed row) (err error) {
		attempts++
		rec, err = scanRecord(changed)
		if errors.Is(err, sql.ErrNoRows) {
			if attempts > 1 && c.Outcome() == nil { // an end that was made before is refused, as that of others is
				rec, err = r.claimed(ctx, tx, c)
				return err
			}
			return r.refused(ctx, tx, c.To())
		}
		if err != nil || c.To() != thread.Continued {
			return err
		}
		if err := handOn(ctx, tx, c); err != nil {
			return err
		}
		rec, err = scanRecord(tx.QueryRowContext(ctx, byIDSQL, c.ID()))
		return err
	})
	if err != nil {
		return thread.Record{}, fmt.Errorf("apply change: %w", err)
	}
	return rec, nil
}

// claimed is the row where an attempt whose outcome was not known has claimed it; else the
// claim is refused.
func (r *runner) claimed(ctx context.Context, tx *sql.Tx, claim store.Change) (thread.Record, error) {
	rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, r.id))
	if err == nil && r.owns(rec.Run) && rec.Status == claim.To() && rec.Process == claim.Process() {
		return rec, nil
	}
	return thread.Record{}, r.refused(ctx, tx, claim.To())
}

func (r *runner) changeSQL(c store.Change) (string, []any, error) {
	at, from := millis(c.At()), jsonList(thread.Sources(c.To()))
	if c.Outcome() == nil {
		p := c.Process()
		return claimSQL, []any{c.To(), p.PID, p.Host, p.Boot, p.PIDNamespace, p.Started, p.Worker, at, at, r.run, r.id, r.run, from}, nil
	}
	result, err := json.Marshal(c.Outcome())
	if err != nil {
		return "", nil, fmt.Errorf("outcome of %s: %w", c.ID(), err)
	}
	args := []any{c.To(), string(result), at, at, at}
	if cost := c.Cost(); cost != nil {
		args = append(args, cost.Turns, cost.InputTokens, cost.OutputTokens, cost.CacheReadTokens, cost.CacheWriteTokens, int64(cost.Spend))
	} else {
		args = append(args, nil, nil, nil, nil, nil, nil)
	}
	var retry any
	if due := c.Outcome().Retry; due != nil {
		retry = millis(due.At)
	}
	return finishSQL, append(args, retry, r.run, r.id, r.run, from), nil
}

// refused says why a guarded update changed nothing. To is empty when it would
// not have changed the state.
func (r *runner) refused(ctx context.Context, tx *sql.Tx, to thread.State) error {
	id := r.id
	rec, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, id))
	if err != nil {
		return notFound(err, id)
	}
	switch {
	case !r.owns(rec.Run):
		return fenced(id)
	case to == "":
		return fmt.Errorf("thread %s is %s: %w", id, rec.Status, thread.ErrSettled)
	case thread.CanMove(rec.Status, to) && rec.CancelRequestedAt.IsZero():
		return fmt.Errorf("%w: %w", notLinked(rec), thread.ErrSettled)
	case thread.CanMove(rec.Status, to):
		return fmt.Errorf("thread %s is %s and has been asked to stop, so it cannot become %s: %w", id, rec.Status, to, thread.ErrSettled)
	}
	return fmt.Errorf("thread %s is %s and cannot become %s: %w", id, rec.Status, to, thread.ErrSettled)
}

// SetProcess implements [store.Runner]. It is not waited to disk: after a loss
// of power there is no such process, and one on another machine says it again when it
// claims its row.
func (r *runner) SetProcess(ctx context.Context, p thread.Process) error {
	err := r.updateOne(repeatable(minor(ctx)), Relaxed, `UPDATE threads SET pid = ?, host = ?, boot_id = ?, pid_namespace = ?, pid_started = ?, worker = ?,
		updated_at = ?, run = ?, `+newWrite+` WHERE thread_id = ? AND `+ownRun+` AND status IN ('created', 'running')`,
		p.PID, p.Host, p.Boot, p.PIDNamespace, p.Started, p.Worker, millis(r.now()), r.run, r.id, r.run)
	if err != nil {
		return fmt.Errorf("set process: %w", err)
	}
	return nil
}

const recordCostSQL = `UPDATE threads SET turns = ?, input_tokens = ?, output_tokens = ?, cache_read_tokens = ?,
	cache_write_tokens = ?, spend = ?, token_count = ?, updated_at = ?, last_used = ?, run = ?
	WHERE thread_id = ? AND ` + ownRun + ` AND status = 'running'`

// RecordCost implements [store.Runner]. It is not waited to disk: the final
// cost comes with the change that finishes the thread.
func (r *runner) RecordCost(ctx context.Context, c thread.Cost, contextTokens int64) error {
	ctx = repeatable(minor(ctx))
	now := millis(r.now())
	args := []any{
		c.Turns, c.InputTokens, c.OutputTokens, c.CacheReadTokens, c.CacheWriteTokens, int64(c.Spend), contextTokens, now, now, r.run, r.id, r.run,
	}
	change := func(s storedRecord) storedRecord {
		s.rec.Cost, s.rec.TokenCount, s.rec.Run = c, contextTokens, r.run
		s.rec.UpdatedAt, s.rec.LastUsed = fromMillis(now), fromMillis(now)
		return s
	}
	done, err := update(ctx, r.registry, Relaxed, Question{byIDSQL, string(r.id)}, change, recordCostSQL, args...)
	if !done && err == nil {
		err = r.updateOne(ctx, Relaxed, recordCostSQL, args...)
	}
	if err != nil {
		return fmt.Errorf("record cost: %w", err)
	}
	return nil
}

// updateOne runs a guarded update of one row that leaves its state alone.
func (r *runner) updateOne(ctx context.Context, level Durability, query string, args ...any) error {
	return r.writeFrom(ctx, level, query+" RETURNING 1", args, func(ctx context.Context, tx *sql.Tx, changed row) error {
		err := changed.Scan(new(int))
		if errors.Is(err, sql.ErrNoRows) {
			return r.refused(ctx, tx, "")
		}
		return err
	})
}

// writeFrom writes to the registry, beginning with a statement whose row f is given.
func (s *Store) writeFrom(
	ctx context.Context, level Durability, query string, args []any, f func(ctx context.Context, tx *sql.Tx, first row) error,
) error {
	return s.registry.WriteFrom(ctx, level, Statement{query, args}, func(ctx context.Context, tx *sql.Tx) error {
		return f(ctx, tx, tx.QueryRowContext(ctx, query, args...))
	})
}

// cancelledBy is how metadata says who has asked a thread to stop: where it was empty, and
// as the end of what was there.
func cancelledBy(by string) (alone, beside string) {
	if by == "" {
		return "{}", "}"
	}
	said, _ := json.Marshal(thread.PlainName(by)) // a text can be written
	member := `"` + thread.MetadataCancelledBy + `":` + string(said) + "}"
	return "{" + member, "," + member
}

// RequestCancel implements [store.Registry]. Threads below a terminal one are
// marked as well. The rows come parents first.
func (s *Store) RequestCancel(ctx context.Context, id thread.ID, by string, at time.Time) (active []thread.Record, err error) {
	err = s.registry.Write(ctx, Durable, func(ctx context.Context, tx *sql.Tx) error {
		alone, beside := cancelledBy(by)
		_, err := tx.ExecContext(ctx, withSubtree+`UPDATE threads SET cancel_requested_at = ?, updated_at = ?,
				metadata = CASE WHEN metadata = '{}' THEN CAST(? AS TEXT)
					WHEN substr(metadata, 1, 2) = '{"' AND substr(metadata, length(metadata)) = '}' THEN substr(metadata, 1, length(metadata) - 1) || CAST(? AS TEXT)
					ELSE metadata END
			WHERE thread_id IN (SELECT thread_id FROM subtree) AND status IN ('created', 'running') AND cancel_requested_at IS NULL`,
			id, millis(at), millis(at), alone, beside)
		if err != nil {
			return err
		}
		if err := dropRetries(ctx, tx, id, at); err != nil {
			return err
		}
		all, err := subtree(ctx, tx, id)
		active = nil
		for _, rec := range all {
			if !rec.Status.Terminal() {
				active = append(active, rec)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("request cancel: %w", err)
	}
	return active, nil
}
