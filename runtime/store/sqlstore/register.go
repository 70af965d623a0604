package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Register implements [store.Registry].
func (s *Store) Register(ctx context.Context, n store.NewThread) (rec thread.Record, created bool, err error) {
	if err = checkNew(n, n.ID); err == nil {
		err = s.registry.WriteFrom(minor(ctx), Durable, Statement{hasRowSQL, []any{n.ID}}, func(ctx context.Context, tx *sql.Tx) (err error) {
			rec, created, err = register(ctx, tx, n)
			return err
		})
	}
	if err != nil {
		return thread.Record{}, false, fmt.Errorf("register thread: %w", s.deletedOr(ctx, err, n.ContinuationOf))
	}
	return rec, created, nil
}

// Candidate implements [store.Registry].
func (s *Store) Candidate(ctx context.Context, n store.NewThread) (c store.Candidate, err error) {
	first := n.ID
	if first == "" {
		first = thread.NewID(n.Directive, n.Now, 1)
	}
	if err = checkNew(n, first); err == nil {
		c, err = s.candidate(ctx, n)
	}
	if err != nil {
		return store.Candidate{}, fmt.Errorf("register thread: %w", s.deletedOr(ctx, err, n.ContinuationOf))
	}
	return c, nil
}

func checkNew(n store.NewThread, id thread.ID) error {
	if _, err := thread.ParseID(string(id)); err != nil {
		return err
	}
	switch {
	case n.Kind != thread.KindDirective && n.Kind != thread.KindTool && n.Kind != thread.KindSet:
		return fmt.Errorf("kind %q is none of %q, %q and %q", n.Kind, thread.KindDirective, thread.KindTool, thread.KindSet)
	case n.Entry < 0 || n.Spawns < 0:
		return fmt.Errorf("entry %d, spawns %d", n.Entry, n.Spawns)
	case n.Directive == "":
		return errors.New("item id is empty")
	case (n.Handoff || n.Retry) && n.ContinuationOf == "":
		return errors.New("a handoff needs a thread to continue, and so does a retry")
	case n.Handoff && n.Retry:
		return errors.New("a handoff is no retry")
	case n.Now.UnixMilli() <= 0:
		return fmt.Errorf("creation time %v is not set", n.Now)
	}
	return nil
}

func register(ctx context.Context, tx *sql.Tx, n store.NewThread) (thread.Record, bool, error) {
	if known, err := byKey(ctx, tx, n); err != nil {
		return thread.Record{}, false, err
	} else if known != nil {
		return *known, false, nil
	}
	var chainRoot thread.ID
	if n.ContinuationOf != "" {
		root, err := prepareSuccessor(ctx, tx, &n)
		if err != nil {
			return thread.Record{}, false, err
		}
		chainRoot = root
	}
	if n.ParentID != "" && !n.Handoff && !n.Retry {
		if err := countSpawn(ctx, tx, n); err != nil {
			return thread.Record{}, false, err
		}
	}
	if taken, err := hasRow(ctx, tx, n.ID); err != nil {
		return thread.Record{}, false, err
	} else if taken {
		return thread.Record{}, false, fmt.Errorf("%s: %w", n.ID, store.ErrTaken)
	}
	metadata, err := thread.ParseMetadata(n.Metadata)
	if err != nil {
		return thread.Record{}, false, err
	}
	now := millis(n.Now)
	if n.Handoff || n.Retry {
		before := tx.QueryRowContext(ctx, "SELECT client, origin FROM threads WHERE thread_id = ?", n.ContinuationOf)
		if err := before.Scan(&n.Origin.Client, &n.Origin.Key); err != nil {
			return thread.Record{}, false, notFound(err, n.ContinuationOf)
		}
	}
	rec, err := scanRecord(tx.QueryRowContext(ctx, `INSERT INTO threads
		(thread_id, run, id_ordinal, kind, directive, name, parent_id, continuation_of, chain_root_id, model, request_key, request_hash,
		client, origin, metadata, is_set, created_at, updated_at, last_used)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING `+columns,
		n.ID, n.Run, ordinalOrNull(n.Ordinal), storedKind(n.Kind), n.Directive, n.Name, orNull(n.ParentID), orNull(n.ContinuationOf), orNull(chainRoot), n.Model,
		orNull(n.RequestKey), orNull(n.RequestHash), n.Origin.Client, n.Origin.Key, string(metadata), n.Kind == thread.KindSet, now, now, now))
	if err == nil {
		err = takeEntry(ctx, tx, n)
	}
	return rec, err == nil, err
}

// storedKind is the kind as its column has it: that of a set stands in a column of its own.
func storedKind(k thread.Kind) thread.Kind {
	if k == thread.KindSet {
		return thread.KindTool
	}
	return k
}

// ordinalOrNull is null for an id that is no candidate.
func ordinalOrNull(ordinal int) any {
	if ordinal == 0 {
		return nil
	}
	return ordinal
}

// countSpawn counts one child against the parent, which must be running and not
// be asked to stop: a child registered after a cancel would escape it.
func countSpawn(ctx context.Context, tx *sql.Tx, n store.NewThread) error {
	if n.ParentEnded {
		return countLateSpawn(ctx, tx, n)
	}
	changed, err := changeIn(ctx, tx, `UPDATE threads SET spawn_count = spawn_count + ?1, updated_at = ?2
		WHERE thread_id = ?3 AND status = 'running' AND cancel_requested_at IS NULL AND spawn_count + ?1 <= ?4`,
		spawnsOf(n), millis(n.Now), n.ParentID, n.MaxSpawns)
	if err != nil || changed {
		return err
	}
	if err := mayStart(ctx, tx, n); err != nil {
		return err
	}
	return tooMany(n)
}

// spawnsOf is how many children a new thread counts as.
func spawnsOf(n store.NewThread) int { return max(1, n.Spawns) }

func tooMany(n store.NewThread) error {
	return &store.SpawnsError{Parent: n.ParentID, Max: n.MaxSpawns, Asked: n.Spawns}
}

// mayStart refuses a child of a parent that cannot start it as it stands.
func mayStart(ctx context.Context, q rowQuerier, n store.NewThread) error {
	parent, err := parentOf(ctx, q, n)
	switch {
	case err != nil:
		return err
	case parent.Status != thread.Running:
		return fmt.Errorf("parent %s is %s: %w", n.ParentID, parent.Status, store.ErrParentGone)
	case !parent.CancelRequestedAt.IsZero():
		return fmt.Errorf("parent %s has been asked to stop: %w", n.ParentID, store.ErrParentGone)
	case parent.SpawnCount+spawnsOf(n) > n.MaxSpawns:
		return tooMany(n)
	}
	return nil
}

func parentOf(ctx context.Context, tx rowQuerier, n store.NewThread) (thread.Record, error) {
	parent, err := scanRecord(tx.QueryRowContext(ctx, byIDSQL, n.ParentID))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("parent %s: %w: %w", n.ParentID, store.ErrParentGone, thread.ErrNotFound)
	}
	return parent, err
}

// rowQuerier is a transaction, or the database as it is.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// byKey is the thread that a request key names; nil where there is none.
func byKey(ctx context.Context, q rowQuerier, n store.NewThread) (*thread.Record, error) {
	if n.RequestKey == "" {
		return nil, nil
	}
	rec, err := scanRecord(q.QueryRowContext(ctx, byRequestKeySQL, n.RequestKey))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &rec, store.SameCall(rec, n)
}

// highestOrdinalSQL finds the last n of a directive in a second.
const highestOrdinalSQL = `SELECT coalesce(max(n), 0) FROM (
	SELECT max(id_ordinal) AS n FROM threads WHERE directive = ?1 AND created_at / 1000 = ?2
	UNION ALL SELECT max(id_ordinal) FROM deletions WHERE directive = ?1 AND created_at / 1000 = ?2) AS taken`

// candidate finds the highest ordinal in use by an index, so that its cost does not
// grow with the threads of one second.
func (s *Store) candidate(ctx context.Context, n store.NewThread) (c store.Candidate, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) (err error) {
		if c.Known, err = byKey(ctx, db, n); c.Known != nil || err != nil {
			return err
		}
		if err := refusal(ctx, db, n); err != nil {
			return err
		}
		c.ID = n.ID
		if n.ID != "" {
			return nil
		}
		var highest int
		err = db.QueryRowContext(ctx, highestOrdinalSQL, n.Directive, n.Now.Unix()).Scan(&highest)
		c.Ordinal = max(n.Ordinal, highest)
		for taken := true; taken && err == nil; {
			c.Ordinal++
			c.ID = thread.NewID(n.Directive, n.Now, c.Ordinal)
			taken, err = hasRow(ctx, db, c.ID)
		}
		return err
	})
	return c, err
}

// refusal says why a thread could not be registered now, so that nothing is claimed for
// it. The transaction that inserts it decides.
func refusal(ctx context.Context, q rowQuerier, n store.NewThread) error {
	if n.ContinuationOf != "" {
		if _, err := prepareSuccessor(ctx, q, &n); err != nil {
			return err
		}
	}
	if n.ParentID == "" || n.Handoff || n.Retry || n.ParentEnded {
		return nil
	}
	return mayStart(ctx, q, n)
}

const hasRowSQL = `SELECT EXISTS (SELECT 1 FROM threads WHERE thread_id = ?1) OR
	EXISTS (SELECT 1 FROM deletions WHERE thread_id = ?1)`

// hasRow reports whether an id is taken: by a thread, or by one that was deleted and may
// still be named.
func hasRow(ctx context.Context, q rowQuerier, id thread.ID) (has bool, err error) {
	err = q.QueryRowContext(ctx, hasRowSQL, id).Scan(&has)
	return has, err
}
