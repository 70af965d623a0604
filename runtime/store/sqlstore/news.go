package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// selectNews reads what scanNews scans, in its order.
const selectNews = "SELECT n.seq, n.kind, n.thread_id, n.question_id, n.origin, n.told, n.at FROM news n "

const newsSQL = selectNews + "WHERE n.seq > ? ORDER BY n.seq LIMIT ?"

// untoldSQL leaves out questions that were answered meanwhile, and those of threads that
// have ended.
var untoldSQL = selectNews + fmt.Sprintf(`WHERE n.told = 0 AND n.origin <> '' AND n.origin = ? AND (n.kind = 'ended' OR n.kind = 'asked'
	AND EXISTS (SELECT 1 FROM questions q JOIN threads t ON t.thread_id = q.thread_id
		WHERE q.question_id = n.question_id AND q.answer IS NULL AND t.status = 'running'))
	ORDER BY n.seq LIMIT %d`, store.Untellable)

// askedSQL finds the client above: that of the thread, or of the first one above it that
// has one.
const askedSQL = `WITH RECURSIVE above (thread_id, parent_id, origin) AS (
		SELECT thread_id, parent_id, origin FROM threads WHERE thread_id = ?1
		UNION SELECT t.thread_id, t.parent_id, t.origin FROM threads t JOIN above a ON t.thread_id = a.parent_id WHERE a.origin = '')
	INSERT INTO news (kind, thread_id, question_id, at, origin)
		VALUES ('asked', ?1, ?2, ?3, coalesce((SELECT origin FROM above WHERE origin <> ''), ''))`

func scanNews(r row) (n thread.News, err error) {
	var at int64
	err = r.Scan(&n.Seq, &n.Kind, &n.ThreadID, &n.QuestionID, &n.Origin, &n.Told, &at)
	n.At = fromMillis(at)
	return n, err
}

// News implements [store.News].
func (s *Store) News(ctx context.Context, after int64, most int) (list []thread.News, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, newsSQL, after, most)
		list, err = scanEach(rows, err, scanNews)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("news: %w", err)
	}
	return list, nil
}

// LastNews implements [store.News].
func (s *Store) LastNews(ctx context.Context) (seq int64, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM news").Scan(&seq)
	})
	if err != nil {
		return 0, fmt.Errorf("last news: %w", err)
	}
	return seq, nil
}

// Untold implements [store.News].
func (s *Store) Untold(ctx context.Context, key string) ([]thread.News, error) {
	list, err := recallAll(ctx, s.registry, untoldSQL, key, scanNews)
	if err != nil {
		return nil, fmt.Errorf("what a client is to be told: %w", err)
	}
	return list, nil
}

// Tell implements [store.News]. It is not waited to disk: after a loss of power there
// is no client that knows.
func (s *Store) Tell(ctx context.Context, seqs []int64) error {
	_, err := change(ctx, s.registry, Relaxed, "UPDATE news SET told = 1 WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", jsonList(seqs))
	if err != nil {
		return fmt.Errorf("record what a client was told: %w", err)
	}
	return nil
}

// Works implements [store.News].
func (s *Store) Works(ctx context.Context, key string) (works bool, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM threads
			WHERE status IN ('created', 'running') AND origin <> '' AND origin = ?)`, key).Scan(&works)
	})
	if err != nil {
		return false, fmt.Errorf("whether threads of a client work: %w", err)
	}
	return works, nil
}

// heirlessSQL goes by the threads that work and by what is untold, not by all that a
// client has ever started.
const heirlessSQL = `SELECT origin FROM threads WHERE status IN ('created', 'running') AND client <> '' AND client = ?1
	UNION SELECT n.origin FROM news n WHERE n.told = 0 AND n.origin <> ''
		AND EXISTS (SELECT 1 FROM threads t WHERE t.client <> '' AND t.client = ?1 AND t.origin = n.origin)`

// Heirless implements [store.News].
func (s *Store) Heirless(ctx context.Context, client string) (keys []string, err error) {
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, heirlessSQL, client)
		keys, err = scanEach(rows, err, func(r row) (key string, err error) {
			err = r.Scan(&key)
			return key, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("clients named %q: %w", client, err)
	}
	return keys, nil
}

// Inherit implements [store.News].
func (s *Store) Inherit(ctx context.Context, from string, to thread.Origin) error {
	err := s.registry.Write(ctx, Local, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE news SET origin = ? WHERE told = 0 AND origin <> '' AND origin = ?", to.Key, from)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE threads SET origin = ? WHERE client <> '' AND client = ? AND origin = ?
			AND status IN ('created', 'running')`, to.Key, to.Client, from)
		return err
	})
	if err != nil {
		return fmt.Errorf("take over what a client is to be told: %w", err)
	}
	return nil
}

// NoteBudget implements [store.Notices]. It is not waited to disk: the spend that it is
// about is neither.
func (s *Store) NoteBudget(ctx context.Context, id thread.ID, at time.Time) (first bool, err error) {
	first, err = change(ctx, s.registry, Local, `INSERT INTO news (kind, thread_id, at, told) VALUES ('budget_80', ?, ?, 1)
		ON CONFLICT DO NOTHING`, id, millis(at))
	if err != nil {
		return false, fmt.Errorf("note the budget of %s: %w", id, err)
	}
	return first, nil
}

// The values of the column notified.
const (
	noticeDue     = 0
	noticeClaimed = 1
	noticeDone    = 2
)

// dueSQL finds notices of some kinds; of roots alone where ROOTS says so.
const dueSQL = `SELECT n.seq, n.kind, n.thread_id, n.question_id, n.at, n.notified FROM news n
	WHERE n.seq > ? AND n.notified < 2 AND n.at >= ? AND n.kind IN (SELECT value FROM json_each(?))ROOTS ORDER BY n.seq LIMIT ?`

const ofRoots = " AND EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = n.thread_id AND t.parent_id IS NULL)"

var dueOfAll, dueOfRoots = strings.Replace(dueSQL, "ROOTS", "", 1), strings.Replace(dueSQL, "ROOTS", ofRoots, 1)

// DueNotices implements [store.Notices].
func (s *Store) DueNotices(ctx context.Context, q store.NoticeQuery) (due []store.Notice, err error) {
	query := dueOfRoots
	if q.Children {
		query = dueOfAll
	}
	err = s.registry.Read(ctx, func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, query, q.After, millis(q.Since), jsonList(q.Kinds), q.Most)
		due, err = scanEach(rows, err, func(r row) (n store.Notice, err error) {
			var at, state int64
			err = r.Scan(&n.Seq, &n.Kind, &n.ThreadID, &n.QuestionID, &at, &state)
			n.At, n.Claimed = fromMillis(at), state == noticeClaimed
			return n, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("notices that are due: %w", err)
	}
	return due, nil
}

// ClaimNotice implements [store.Notices]. It is on disk when it returns.
func (s *Store) ClaimNotice(ctx context.Context, seq int64) error {
	_, err := change(ctx, s.registry, Durable, "UPDATE news SET notified = ? WHERE seq = ? AND notified = ?", noticeClaimed, seq, noticeDue)
	if err != nil {
		return fmt.Errorf("claim a notice: %w", err)
	}
	return nil
}

// EndNotice implements [store.Notices].
func (s *Store) EndNotice(ctx context.Context, seq int64) error {
	if _, err := change(ctx, s.registry, Relaxed, "UPDATE news SET notified = ? WHERE seq = ?", noticeDone, seq); err != nil {
		return fmt.Errorf("end a notice: %w", err)
	}
	return nil
}
