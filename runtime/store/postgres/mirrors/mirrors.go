// Package mirrors keeps what is due for the mirrors of a project in its schema of
// PostgreSQL, where every machine's changes note it (migration 0008). A mirror is known by a
// hash of its address alone: where it is, and its key, stand in the settings of those who
// have it. Machines with the same mirror take turns at sending; each mirror gets all
// threads.
package mirrors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	// turn is how long nobody else sends after the last sign of the machine that does. A
	// request to a mirror ends in half of it.
	turn = time.Minute
	// forgotten is how long ago a machine that has a mirror was last here when nothing more is
	// noted for it.
	forgotten = 30 * 24 * time.Hour
	// deadline bounds each call.
	deadline = 10 * time.Second
	// most is how many threads a list has.
	most = 100_000
)

// ID is the hash of a mirror's address by which the schema knows it.
func ID(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:16])
}

func isID(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 16 && strings.ToLower(text) == text
}

// Of are the ids of the mirrors of a project.
func Of(ctx context.Context, pool *pgxpool.Pool) (ids []string, err error) {
	ctx, done := context.WithTimeout(ctx, deadline)
	defer done()
	rows, err := pool.Query(ctx, "SELECT mirror FROM mirrors ORDER BY mirror LIMIT 1000")
	if err != nil {
		return nil, fmt.Errorf("mirrors of the project: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range all {
		if isID(id) { // a role of the project can write anything there
			ids = append(ids, id)
		}
	}
	return ids, err
}

// Outbox is what is due for one mirror.
type Outbox struct {
	// Pool has connections that look into the project's schema; nil: there is none yet, and
	// nothing is due.
	Pool   func() *pgxpool.Pool
	Mirror string // see [ID]
	Sender string // names this machine's right to send, for people up to a space; two of one name are one

	mu    sync.Mutex
	taken map[thread.ID]int64 // the notes that are being sent
}

// do runs f with the pool and a deadline, unless there is no schema yet.
func (o *Outbox) do(ctx context.Context, what string, f func(context.Context, *pgxpool.Pool) error) error {
	pool := o.Pool()
	if pool == nil {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, deadline)
	defer done()
	if err := f(ctx, pool); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// exec runs a statement and returns how many rows it has changed.
func (o *Outbox) exec(ctx context.Context, what, query string, args ...any) (rows int64, err error) {
	err = o.do(ctx, what, func(ctx context.Context, pool *pgxpool.Pool) error {
		done, err := pool.Exec(ctx, query, args...)
		rows = done.RowsAffected()
		return err
	})
	return rows, err
}

// Join has all changes noted for the mirror from now on, for as long as somebody joins again
// within 30 days.
func (o *Outbox) Join(ctx context.Context) error {
	return o.do(ctx, "note a mirror", func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.Exec(ctx, `INSERT INTO mirrors (mirror) VALUES ($1)
			ON CONFLICT (mirror) DO UPDATE SET seen_at = clock_timestamp() WHERE mirrors.seen_at < clock_timestamp() - interval '1 hour'`, o.Mirror)
		if err != nil {
			return err
		}
		gone, err := pool.Exec(ctx, `DELETE FROM mirrors WHERE seen_at < clock_timestamp() - $1::bigint * interval '1 second'`, int64(forgotten.Seconds()))
		if err == nil && gone.RowsAffected() > 0 {
			_, err = pool.Exec(ctx, `DELETE FROM mirror_due WHERE mirror NOT IN (SELECT mirror FROM mirrors)`)
		}
		return err
	})
}

const noteSQL = `INSERT INTO mirror_due (mirror, thread_id) VALUES ($1, $2)
	ON CONFLICT (mirror, thread_id) DO UPDATE SET note = excluded.note`

// Note says that a thread is due for this mirror.
func (o *Outbox) Note(ctx context.Context, id thread.ID) error {
	_, err := o.exec(ctx, "note that a copy is due", noteSQL, o.Mirror, string(id))
	return err
}

// List are the threads that are due, the first noted first, at most 100 000.
func (o *Outbox) List(ctx context.Context) (due []thread.ID, err error) {
	err = o.do(ctx, "copies that are due", func(ctx context.Context, pool *pgxpool.Pool) error {
		rows, err := pool.Query(ctx, `SELECT thread_id FROM mirror_due WHERE mirror = $1 ORDER BY note LIMIT $2`, o.Mirror, most)
		if err != nil {
			return err
		}
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, text := range texts {
			if id, bad := thread.ParseID(text); bad == nil {
				due = append(due, id)
			}
		}
		return err
	})
	return due, err
}

// IsDue reports whether a thread is due.
func (o *Outbox) IsDue(ctx context.Context) (due bool, err error) {
	err = o.do(ctx, "whether copies are due", func(ctx context.Context, pool *pgxpool.Pool) error {
		return pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM mirror_due WHERE mirror = $1)`, o.Mirror).Scan(&due)
	})
	return due, err
}

// Take says that a thread is being sent. A later change makes another note, which
// [Outbox.Sent] leaves.
func (o *Outbox) Take(ctx context.Context, id thread.ID) error {
	if _, err := o.renew(ctx); err != nil {
		return err
	}
	note := int64(0)
	err := o.do(ctx, "take a note", func(ctx context.Context, pool *pgxpool.Pool) error {
		err := pool.QueryRow(ctx, `SELECT note FROM mirror_due WHERE mirror = $1 AND thread_id = $2`, o.Mirror, string(id)).Scan(&note)
		if errors.Is(err, pgx.ErrNoRows) { // somebody has sent it
			return nil
		}
		return err
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken == nil {
		o.taken = map[thread.ID]int64{}
	}
	o.taken[id] = note
	return err
}

// Sent forgets a note that was taken. It reports whether this machine still had the turn:
// else another may have sent what the thread is now before this one sent what it was, so that
// the thread is due again.
func (o *Outbox) Sent(ctx context.Context, id thread.ID) (mine bool, err error) {
	o.mu.Lock()
	note := o.taken[id]
	delete(o.taken, id)
	o.mu.Unlock()
	if mine, err = o.renew(ctx); err != nil {
		return false, err
	}
	if !mine {
		return false, o.Note(ctx, id)
	}
	gone, err := o.exec(ctx, "forget a note", `DELETE FROM mirror_due WHERE mirror = $1 AND thread_id = $2 AND note = $3`, o.Mirror, string(id), note)
	if err == nil && gone == 0 { // it has changed since it was taken
		_, err = o.exec(ctx, "renew a note", `UPDATE mirror_due SET since = clock_timestamp() WHERE mirror = $1 AND thread_id = $2`, o.Mirror, string(id))
	}
	return true, err
}

// turnSQL gives the turn until a time by the clock of the server.
const turnSQL = `UPDATE mirrors SET sender = $2, sends_until = clock_timestamp() + $3::bigint * interval '1 second' WHERE mirror = $1 AND `

// Begin takes the right to send, which one machine has at a time. It is false where another
// has it.
func (o *Outbox) Begin(ctx context.Context) (mine bool, err error) {
	rows, err := o.exec(ctx, "take the turn to send copies", turnSQL+`(sender = $2 OR sends_until < clock_timestamp())`, o.Mirror, o.Sender, int64(turn.Seconds()))
	return rows == 1, err
}

// renew makes the turn last, and reports whether it is still this machine's.
func (o *Outbox) renew(ctx context.Context) (mine bool, err error) {
	rows, err := o.exec(ctx, "keep the turn to send copies", turnSQL+`sender = $2`, o.Mirror, o.Sender, int64(turn.Seconds()))
	return rows == 1, err
}

// End gives the right to send back.
func (o *Outbox) End(ctx context.Context) error {
	_, err := o.exec(ctx, "end the turn to send copies", `UPDATE mirrors SET sends_until = '-infinity' WHERE mirror = $1 AND sender = $2`, o.Mirror, o.Sender)
	return err
}

// BeginSweep reports whether a sweep is due, which it then is no more for that long.
func (o *Outbox) BeginSweep(ctx context.Context, every time.Duration) (due bool, err error) {
	rows, err := o.exec(ctx, "begin the sweep of a mirror", `UPDATE mirrors SET swept_at = clock_timestamp()
		WHERE mirror = $1 AND swept_at < clock_timestamp() - $2::bigint * interval '1 second'`, o.Mirror, int64(every.Seconds()))
	return rows == 1, err
}
