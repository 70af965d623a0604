package postgres

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Inspection is how a server is, and a project on it.
type Inspection struct {
	Version     string        // of the server
	ReadOnly    bool          // it is a standby, or only reads
	Encrypted   bool          // the connection is, up to the server or to what stands before it
	Local       bool          // it does not leave this machine
	Clock       time.Duration // how far the server's clock is before that of this machine
	Answer      time.Duration // that a statement took
	Connections int           // of all clients
	Ours        int           // of those, of this program in this database
	Most        int           // that the server allows ordinary roles
	Hint        time.Duration // from a NOTIFY to the listener
	HintsLost   bool          // none came: a pooler is between
	Projects    int           // on the server
	Schema      string        // of the project; empty: there is none yet
	Has, Knows  int64         // versions of the project's schema: of the server, of this program
	Waiting     []Waiting
}

// Waiting is a session that waits for another.
type Waiting struct {
	PID     int           `json:"pid"`
	Name    string        `json:"name"` // application_name
	For     time.Duration `json:"-"`
	Seconds float64       `json:"seconds"`
	Behind  []int         `json:"behind"` // process ids of those that it waits for
}

// longWait is how long a session waits for others until it is told of: writers take turns,
// of milliseconds each.
const longWait = 3 * time.Second

// Inspect looks at the server and at a project, and changes nothing.
func (s *Server) Inspect(ctx context.Context, name string) (in Inspection, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	for _, look := range []func(context.Context, *Inspection) error{
		s.inspectServer, s.inspectWaiting, s.inspectHints,
		func(ctx context.Context, in *Inspection) error { return s.inspectProject(ctx, name, in) },
	} {
		if err := look(ctx, &in); err != nil {
			return in, s.explain(err)
		}
	}
	return in, nil
}

func (s *Server) inspectServer(ctx context.Context, in *Inspection) error {
	conn, err := s.pool.Acquire(ctx) // which may connect, and is not what is timed
	if err != nil {
		return err
	}
	defer conn.Release()
	in.Encrypted, in.Local = wire(conn.Conn().PgConn().Conn())
	began := s.opts.Now()
	var milliseconds int64
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
		(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
		(SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')::int,
		(SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND application_name LIKE 'rye-mcp%')::int,
		current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
		(SELECT count(*) FROM projects)::int`).
		Scan(&in.Version, &in.ReadOnly, &milliseconds, &in.Connections, &in.Ours, &in.Most, &in.Projects)
	in.Answer = s.opts.Now().Sub(began)
	in.Clock = time.UnixMilli(milliseconds).Sub(began.Add(in.Answer / 2))
	return err
}

// wire says how a connection comes to the server. The server is not asked: it may be a false
// one, and knows only what a pooler has to do with it.
func wire(conn net.Conn) (encrypted, local bool) {
	_, encrypted = conn.(*tls.Conn)
	switch remote := conn.RemoteAddr().(type) {
	case *net.UnixAddr:
		local = true
	case *net.TCPAddr:
		local = remote.IP.IsLoopback()
	}
	return encrypted, local
}

func (s *Server) inspectWaiting(ctx context.Context, in *Inspection) error {
	rows, err := s.pool.Query(ctx, `SELECT pid, coalesce(application_name, ''), extract(epoch FROM clock_timestamp() - query_start)::float8, pg_blocking_pids(pid)
		FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Waiting, err error) {
		err = row.Scan(&w.PID, &w.Name, &w.Seconds, &w.Behind)
		w.For = time.Duration(w.Seconds * float64(time.Second))
		return w, err
	})
	for _, w := range all {
		if w.For >= longWait {
			in.Waiting = append(in.Waiting, w)
		}
	}
	return err
}

// hintPatience is how long a hint of a trial may take.
const hintPatience = 2 * time.Second

// inspectHints sends a hint to itself, on a channel that nobody else listens on.
func (s *Server) inspectHints(ctx context.Context, in *Inspection) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is held back
	channel := "rye_trial_" + strings.ToLower(rand.Text()[:16])
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	began := s.opts.Now()
	if _, err := s.pool.Exec(ctx, "SELECT pg_notify($1, '')", channel); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, hintPatience)
	defer cancel()
	if _, err := conn.WaitForNotification(waiting); err != nil {
		in.HintsLost = errors.Is(waiting.Err(), context.DeadlineExceeded)
		if !in.HintsLost {
			return err
		}
	}
	in.Hint = s.opts.Now().Sub(began)
	return nil
}

func (s *Server) inspectProject(ctx context.Context, name string, in *Inspection) (err error) {
	if in.Knows, err = project(name, "").known(); err != nil {
		return err
	}
	err = s.pool.QueryRow(ctx, "SELECT schema_name FROM projects WHERE name = $1", name).Scan(&in.Schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+pgx.Identifier{in.Schema, "goose_db_version"}.Sanitize()+" WHERE is_applied").Scan(&in.Has)
}

// Retire takes a project out of use: its schema is kept under another name, which is
// returned, and the name of the project is free. Without such a project it returns an empty
// name. To is where the threads are now, which is told to callers that would make the
// project anew; empty: they are nowhere else.
func (s *Server) Retire(ctx context.Context, name, to string) (kept string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var schema string
		err := tx.QueryRow(ctx, "DELETE FROM projects WHERE name = $1 RETURNING schema_name", name).Scan(&schema)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		kept = fmt.Sprintf("moved_%d_%s", s.opts.Now().UnixMilli(), schema[len(schema)-12:]) // the hash of its name
		_, err = tx.Exec(ctx, "ALTER SCHEMA "+pgx.Identifier{schema}.Sanitize()+" RENAME TO "+pgx.Identifier{kept}.Sanitize())
		if err == nil && to != "" {
			_, err = tx.Exec(ctx, comment(kept, movedMark+to), pgx.QueryExecModeExec)
		}
		return err
	})
	return kept, s.explain(err)
}
