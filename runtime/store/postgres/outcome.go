package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ticket names a transaction, so that another connection can ask what became of it.
type ticket struct {
	xid string
	// era changes whenever the server may have forgotten a number that it gave: when it
	// starts, when it recovers from the crash of one of its processes (statistics are
	// reset then), and when another server takes its place. Behind that another transaction
	// can have the number.
	era string
	pid uint32 // of the server's process
}

const (
	eraColumn     = "pg_postmaster_start_time()::text || ' ' || coalesce((SELECT stats_reset FROM pg_catalog.pg_stat_bgwriter)::text, '')"
	ticketColumns = "pg_current_xact_id()::text, pg_backend_pid(), " + eraColumn
)

func (t *ticket) scan(row pgx.Row) error { return row.Scan(nil, &t.xid, &t.pid, &t.era) }

// lostCommitError says that the answer to a COMMIT did not come.
type lostCommitError struct {
	ticket ticket
	err    error
}

func (e *lostCommitError) Error() string { return "the answer to COMMIT was lost: " + e.err.Error() }

func (e *lostCommitError) Unwrap() error { return e.err }

// outcome is what became of a transaction.
type outcome string

// The answers of pg_xact_status, and ours.
const (
	committed  outcome = "committed"
	aborted    outcome = "aborted"
	inProgress outcome = "in progress"
	unknown    outcome = "unknown"
)

// errStillOpen says that the server has not ended a transaction whose client is gone.
var errStillOpen = errors.New("the transaction is still open")

// resolve finds out what became of a transaction whose COMMIT was not answered. One that
// is still open is ended, as nobody will: that frees its locks. It answers unknown when
// the server cannot be asked until ctx ends, or does not know.
func (s *Store) resolve(ctx context.Context, t ticket) (outcome, error) {
	var wait backoff
	for {
		now, err := s.ask(ctx, t)
		if err == nil && now == inProgress {
			err = errStillOpen
		}
		if err == nil {
			return now, nil
		}
		if wait.next(ctx) != nil {
			return unknown, err
		}
	}
}

func (s *Store) ask(ctx context.Context, t ticket) (outcome, error) {
	var (
		now   *outcome
		era   string
		query = "SELECT CASE WHEN " + eraColumn + " = $2 THEN pg_xact_status($1::text::xid8) END, " + eraColumn
	)
	if err := s.pool.QueryRow(ctx, query, t.xid, t.era).Scan(&now, &era); err != nil {
		return unknown, err
	}
	if now == nil || era != t.era {
		return unknown, nil
	}
	if *now == inProgress {
		_, err := s.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
			WHERE pid = $1 AND backend_xid = $2::text::xid8::xid`, int64(t.pid), t.xid)
		return inProgress, err
	}
	return *now, nil
}

// backoff is how long to wait before another attempt: from 2 ms, twice as long each time,
// up to 250 ms, and up to half of it less so that those who failed together do not meet again.
type backoff struct{ attempts int }

func (b *backoff) next(ctx context.Context) error {
	wait := min(2*time.Millisecond<<min(b.attempts, 10), 250*time.Millisecond)
	b.attempts++
	timer := time.NewTimer(wait - jitter(wait/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("no further attempt: %w", context.Cause(ctx))
	case <-timer.C:
		return nil
	}
}
