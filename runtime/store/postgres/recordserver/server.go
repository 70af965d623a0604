package recordserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ChunkBytes is the most that a chunk has: as much as a frame of a compressed
// transcript. A reader holds a page of them, and a broken link repeats one transaction.
const ChunkBytes = 256 << 10

// PageChunks is how many chunks one statement reads, and one transaction writes: 4 MiB,
// which a link of 10 Mbit/s moves within [Deadline].
const PageChunks = 16

// Deadline bounds each call.
const Deadline = 10 * time.Second

// Errors of records.
var (
	// ErrDamaged: what the server has is not what was written.
	ErrDamaged = errors.New("the record on the server is damaged")
	// ErrChanged: the file was replaced or cut while it was read.
	ErrChanged = errors.New("the record was replaced meanwhile")
)

// GapError says that the server has less of a file than the writer thought. Gone: it has
// nothing of it, and nobody writes it.
type GapError struct {
	Size, From int64
	Gone       bool
}

func (e *GapError) Error() string {
	return fmt.Sprintf("the server has %d bytes, and what follows begins at %d", e.Size, e.From)
}

// Schema is the schema of a project; a store of package postgres is one.
type Schema interface {
	// Pool has connections that look into the schema.
	Pool() *pgxpool.Pool
	Schema() string
	// Explain says what an error of a connection means.
	Explain(context.Context, error) error
	// Again runs what may be run again until the server answers.
	Again(context.Context, func(context.Context) error) error
}

// Server keeps the records of one project. It is safe for concurrent use.
type Server struct {
	open     func(ctx context.Context, create bool) (Schema, error)
	deadline time.Duration

	mu sync.Mutex
	at Schema // nil: it was not there when it was last looked for
}

// Late is the server of a schema that may not be there yet. Open returns nil for one, unless
// it is to create it: then it is to keep what threads have left.
func Late(open func(ctx context.Context, create bool) (Schema, error)) *Server {
	return &Server{open: open, deadline: Deadline}
}

// errNone says that nothing is kept in a project.
var errNone = fmt.Errorf("no thread has run in this project: %w", fs.ErrNotExist)

// schema opens the schema. Without one the error is errNone.
func (s *Server) schema(ctx context.Context, create bool) (Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != nil {
		return s.at, nil
	}
	at, err := s.open(ctx, create)
	if err != nil {
		return nil, err
	}
	if at == nil {
		return nil, errNone
	}
	s.at = at
	return at, nil
}

// none is nil for what is not there: an empty list says so.
func none(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Writer names a thread and the run that writes its records.
type Writer struct {
	Thread thread.ID
	Run    thread.Run // empty: nobody who runs it
	// Token names this writing of a file that grows.
	Token string
}

// limited bounds a call.
func (s *Server) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.deadline, errSlow)
}

var errSlow = fmt.Errorf("the database server did not answer in time: %w (%w)", context.DeadlineExceeded, store.ErrAway)

// millisSQL is the server's clock, so that no machine's own decides what came later.
const millisSQL = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// tries is how often a transaction is begun that collides with others.
const tries = 5

// write runs f in a transaction in which the writer may write. It is on disk when it returns.
func (s *Server) write(ctx context.Context, w Writer, f func(context.Context, session) error) (err error) {
	return s.writeAnd(ctx, w, "COMMIT", f)
}

// relaxed ends a transaction without a wait for the disk.
const relaxed = "SET LOCAL synchronous_commit = off; COMMIT"

// writeAnd is write with what ends the transaction.
func (s *Server) writeAnd(ctx context.Context, w Writer, end string, f func(context.Context, session) error) (err error) {
	for range tries {
		if err = s.writeOnce(ctx, w, end, f); !collides(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("records of %s: %w", w.Thread, err)
	}
	return nil
}

func (s *Server) writeOnce(ctx context.Context, w Writer, end string, f func(context.Context, session) error) error {
	ctx, done := s.limited(ctx)
	defer done()
	at, err := s.schema(ctx, true)
	if err != nil {
		return err
	}
	err = at.Pool().AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return transact(ctx, conn.Conn(), w, end, f) })
	return explained(ctx, at, err)
}

// session is what runs the statements of a transaction.
type session interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// transact runs f in a transaction, which begins with the fence in one request.
func transact(ctx context.Context, conn *pgx.Conn, w Writer, end string, f func(context.Context, session) error) error {
	err := fence(ctx, conn, w)
	if err == nil {
		err = f(ctx, conn)
	}
	if err != nil {
		_, left := conn.Exec(ctx, "ROLLBACK")
		if left != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // the pool makes another
		}
		return err
	}
	done, err := conn.Exec(ctx, end)
	if err == nil && done.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback // a statement of it had failed
	}
	return err
}

// explained says what went wrong with the server.
func explained(ctx context.Context, at Schema, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err == nil {
		return nil
	}
	return at.Explain(ctx, err)
}

// collides reports whether a transaction may succeed when it is run again: it was in
// somebody's way, or a content that it names was just removed.
func collides(err error) bool {
	pg, is := errors.AsType[*pgconn.PgError](err)
	return is && (pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23503")
}

// Final reports whether the server refuses a write for good: for what it is, or as the role may
// not. Any other error may be gone at the next try.
func Final(err error) bool {
	pg, is := errors.AsType[*pgconn.PgError](err)
	if !is || collides(err) || len(pg.Code) != 5 {
		return false
	}
	switch pg.Code[:2] { // classes of appendix A of PostgreSQL's documentation
	case "22", "23", "42", "54": // data, integrity, access rule, limits
		return true
	}
	return false
}

// fence begins a transaction, locks the row of the thread and refuses a run that may not write.
func fence(ctx context.Context, conn *pgx.Conn, w Writer) error {
	var run thread.Run
	var status thread.State
	var begin pgx.Batch
	begin.Queue("BEGIN")
	begin.Queue(`SELECT run, status FROM threads WHERE thread_id = $1 FOR NO KEY UPDATE`, string(w.Thread)).QueryRow(func(row pgx.Row) error {
		return row.Scan(&run, &status)
	})
	err := conn.SendBatch(ctx, &begin).Close()
	switch {
	case errors.Is(err, pgx.ErrNoRows) && w.Run == "":
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("it was deleted: %w", store.ErrFenced)
	case err != nil:
		return err
	case w.Run == "" && !status.Terminal():
		return fmt.Errorf("it has not ended, and is written by its run alone: %w", store.ErrFenced)
	case w.Run != "" && run != w.Run: // also where the row has none: nobody runs it
		return store.ErrFenced
	}
	return nil
}

// read runs f with a deadline, and again while the server is away.
func (s *Server) read(ctx context.Context, id thread.ID, f func(context.Context, *pgxpool.Pool) error) error {
	at, err := s.schema(ctx, false)
	if err == nil {
		err = at.Again(ctx, func(ctx context.Context) error {
			limited, done := s.limited(ctx)
			defer done()
			return explained(limited, at, f(limited, at.Pool()))
		})
	}
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return err
	case id == "":
		return fmt.Errorf("records on the server: %w", err)
	}
	return fmt.Errorf("records of %s: %w", id, err)
}
