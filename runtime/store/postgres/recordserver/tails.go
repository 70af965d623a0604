package recordserver

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// channel tells which threads have shipped something: schema, space, id. All projects of a
// database share it, for the names of channels are short.
const channel = "rye_records"

// followedSQL is whether somebody follows a thread.
const followedSQL = `SELECT EXISTS (SELECT 1 FROM record_tails WHERE thread_id = $1 AND until > ` + millisSQL + `)`

// Follow says that somebody follows a thread for so long.
func (s *Server) Follow(ctx context.Context, id thread.ID, lasting time.Duration) error {
	return none(s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.Exec(ctx, `INSERT INTO record_tails (thread_id, until) VALUES ($1, `+millisSQL+` + $2)
			ON CONFLICT (thread_id) DO UPDATE SET until = greatest(record_tails.until, excluded.until)`, string(id), lasting.Milliseconds())
		return err
	}))
}

// Followed reports whether somebody follows a thread.
func (s *Server) Followed(ctx context.Context, id thread.ID) (is bool, err error) {
	err = s.read(ctx, id, func(ctx context.Context, pool *pgxpool.Pool) error {
		return pool.QueryRow(ctx, followedSQL, string(id)).Scan(&is)
	})
	return is, none(err)
}

// tell wakes those who follow a thread. It comes after the commit; without it they look
// from time to time.
func (s *Server) tell(ctx context.Context, id thread.ID) {
	ctx, done := s.limited(ctx)
	defer done()
	if at, err := s.schema(ctx, false); err == nil {
		_, _ = at.Pool().Exec(ctx, `SELECT pg_notify($1, $2)`, channel, at.Schema()+" "+string(id))
	}
}

// Listener hears which threads have shipped something.
type Listener struct {
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// Again is how long a listener waits before it connects again.
const again = time.Second

// Listen calls shipped, from one goroutine, for each thread that has shipped something while
// somebody follows it. It has a connection of its own, and connects again when that is lost;
// behind a pooler that gives each transaction another one it hears nothing.
func (s *Server) Listen(shipped func(thread.ID)) *Listener {
	ctx, stop := context.WithCancel(context.Background())
	l := &Listener{stop: stop}
	l.ended.Go(func() {
		for ctx.Err() == nil {
			s.listen(ctx, shipped)
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
		}
	})
	return l
}

func (s *Server) listen(ctx context.Context, shipped func(thread.ID)) {
	begin, done := s.limited(ctx)
	defer done()
	at, err := s.schema(begin, false)
	if err != nil {
		return
	}
	conn, err := pgx.ConnectConfig(begin, at.Pool().Config().ConnConfig.Copy())
	if err != nil {
		return
	}
	defer func() {
		end, done := s.limited(context.WithoutCancel(ctx))
		defer done()
		_ = conn.Close(end)
	}()
	if _, err := conn.Exec(begin, "LISTEN "+channel); err != nil {
		return
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return
		}
		if schema, id, ok := strings.Cut(n.Payload, " "); ok && schema == at.Schema() {
			shipped(thread.ID(id))
		}
	}
}

// Close ends the listening.
func (l *Listener) Close() {
	l.stop()
	l.ended.Wait()
}
