package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxTries bounds the candidates offered to one claim function, since all of
// them are offered inside one write transaction.
const maxTries = 1000

// Register implements [store.Registry]. Claim runs while this process holds the
// write lock of the registry: it must be quick and must not write to the store.
// It runs last, so that after it only the disk can fail; a caller who gets an
// error although claim succeeded has to let go of what it claimed. A nil claim
// claims nothing.
func (s *Store) Register(ctx context.Context, n store.NewThread, claim func(thread.ID) error) (rec thread.Record, created bool, err error) {
	if err := checkNew(n); err != nil {
		return thread.Record{}, false, fmt.Errorf("register thread: %w", err)
	}
	if claim == nil {
		claim = func(thread.ID) error { return nil }
	}
	err = s.registry.write(ctx, durable, func(ctx context.Context, tx *sql.Tx) (err error) {
		rec, created, err = register(ctx, tx, n, claim)
		return err
	})
	if err != nil {
		return thread.Record{}, false, fmt.Errorf("register thread: %w", err)
	}
	return rec, created, nil
}

func checkNew(n store.NewThread) error {
	id := n.ID
	if id == "" {
		id = thread.NewID(n.Directive, n.Now, 1)
	}
	if _, err := thread.ParseID(string(id)); err != nil {
		return err
	}
	switch {
	case n.Kind != thread.KindDirective && n.Kind != thread.KindTool:
		return fmt.Errorf("kind %q is neither %q nor %q", n.Kind, thread.KindDirective, thread.KindTool)
	case n.Directive == "":
		return errors.New("item id is empty")
	case n.Handoff && n.ContinuationOf == "":
		return errors.New("a handoff needs a thread to continue")
	case n.Now.UnixMilli() <= 0:
		return fmt.Errorf("creation time %v is not set", n.Now)
	}
	return nil
}

func register(ctx context.Context, tx *sql.Tx, n store.NewThread, claim func(thread.ID) error) (thread.Record, bool, error) {
	if n.RequestKey != "" {
		rec, err := scanRecord(tx.QueryRowContext(ctx, byRequestKeySQL, n.RequestKey))
		switch {
		case err == nil:
			return rec, false, store.SameCall(rec, n)
		case !errors.Is(err, sql.ErrNoRows):
			return rec, false, err
		}
	}
	var chainRoot thread.ID
	if n.ContinuationOf != "" {
		root, err := prepareSuccessor(ctx, tx, &n)
		if err != nil {
			return thread.Record{}, false, err
		}
		chainRoot = root
	}
	if n.ParentID != "" && !n.Handoff {
		if err := countSpawn(ctx, tx, n); err != nil {
			return thread.Record{}, false, err
		}
	}
	id, ordinal, err := chooseID(ctx, tx, n, claim)
	if err != nil {
		return thread.Record{}, false, err
	}
	now := millis(n.Now)
	rec, err := scanRecord(tx.QueryRowContext(ctx, `INSERT INTO threads
		(thread_id, run, id_ordinal, kind, directive, name, parent_id, continuation_of, chain_root_id, model, request_key, request_hash,
		created_at, updated_at, last_used)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING `+columns,
		id, n.Run, ordinal, n.Kind, n.Directive, n.Name, orNull(n.ParentID), orNull(n.ContinuationOf), orNull(chainRoot), n.Model,
		orNull(n.RequestKey), orNull(n.RequestHash), now, now, now))
	return rec, err == nil, err
}

// countSpawn counts one child against the parent, which must be running and not
// be asked to stop: a child registered after a cancel would escape it.
func countSpawn(ctx context.Context, tx *sql.Tx, n store.NewThread) error {
	if n.ParentEnded {
		return countLateSpawn(ctx, tx, n)
	}
	res, err := tx.ExecContext(ctx, `UPDATE threads SET spawn_count = spawn_count + 1, updated_at = ?
		WHERE thread_id = ? AND status = 'running' AND cancel_requested_at IS NULL AND spawn_count < ?`,
		millis(n.Now), n.ParentID, n.MaxSpawns)
	if err != nil {
		return err
	}
	if changed, err := res.RowsAffected(); err != nil || changed == 1 {
		return err
	}
	parent, err := parentOf(ctx, tx, n)
	switch {
	case err != nil:
		return err
	case parent.Status != thread.Running:
		return fmt.Errorf("parent %s is %s: %w", n.ParentID, parent.Status, store.ErrParentGone)
	case !parent.CancelRequestedAt.IsZero():
		return fmt.Errorf("parent %s has been asked to stop: %w", n.ParentID, store.ErrParentGone)
	}
	return &store.SpawnsError{Parent: n.ParentID, Max: n.MaxSpawns}
}

func parentOf(ctx context.Context, tx *sql.Tx, n store.NewThread) (thread.Record, error) {
	parent, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, n.ParentID))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("parent %s: %w: %w", n.ParentID, store.ErrParentGone, thread.ErrNotFound)
	}
	return parent, err
}

// chooseID returns the first free id and, where it is a candidate of directive
// and second, its ordinal. The highest ordinal in use comes from an index, so
// the cost does not grow with the threads of one second.
func chooseID(ctx context.Context, tx *sql.Tx, n store.NewThread, claim func(thread.ID) error) (thread.ID, *int, error) {
	if n.ID != "" {
		return n.ID, nil, take(ctx, tx, n.ID, claim)
	}
	var highest int
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(id_ordinal), 0) FROM threads
		WHERE directive = ? AND created_at / 1000 = ?`, n.Directive, n.Now.Unix()).Scan(&highest)
	if err != nil {
		return "", nil, err
	}
	for ordinal := highest + 1; ordinal <= highest+maxTries; ordinal++ {
		id := thread.NewID(n.Directive, n.Now, ordinal)
		switch err := take(ctx, tx, id, claim); {
		case err == nil:
			return id, &ordinal, nil
		case !errors.Is(err, store.ErrTaken):
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("%d ids after %s: %w", maxTries, thread.NewID(n.Directive, n.Now, highest+1), store.ErrTaken)
}

// take takes one candidate, or returns an error wrapping store.ErrTaken.
func take(ctx context.Context, tx *sql.Tx, id thread.ID, claim func(thread.ID) error) error {
	var taken bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM threads WHERE thread_id = ?)", id).Scan(&taken); err != nil {
		return err
	}
	if taken {
		return fmt.Errorf("%s: %w", id, store.ErrTaken)
	}
	if err := claim(id); err != nil {
		return fmt.Errorf("claim %s: %w", id, err)
	}
	return nil
}
