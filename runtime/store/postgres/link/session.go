package link

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPooled says that a pooler gives the statements of one client to several sessions of the
// server. Settings of a connection hold in one of them, where others may have set another
// schema, so that nothing can be read or written safely.
var ErrPooled = errors.New("a pooler in transaction mode stands before the PostgreSQL server")

// atStart are the settings that a connection asks for in its first message. A pooler refuses
// others there, or leaves them out: pgbouncer passes on those that servers report to their
// clients, and search_path is none of them before PostgreSQL 18.
var atStart = []string{"application_name", "client_encoding", "options", "replication"}

// Sessions makes connections have their settings, whatever stands before the server.
type Sessions struct {
	kept atomic.Bool // a pooler was seen to keep a session for each client
}

// Prepare has a configuration's settings made by a statement when it has connected.
func (s *Sessions) Prepare(config *pgconn.Config) {
	statement, values := settings(config.RuntimeParams)
	for name := range config.RuntimeParams {
		if !slices.Contains(atStart, name) {
			delete(config.RuntimeParams, name)
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		pid, err := processOf(ctx, conn, statement, values)
		if err != nil || pid == conn.PID() || s.kept.Load() {
			return err
		}
		// Something between has given the connection a number of its own.
		if err := keepsSessions(ctx, config, conn, pid); err != nil {
			return err
		}
		s.kept.Store(true)
		return nil
	}
}

// settings is the statement that makes settings, and its values. It answers the number of
// the server's process.
func settings(set map[string]string) (statement string, values [][]byte) {
	var b strings.Builder
	b.WriteString("SELECT pg_backend_pid()")
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if slices.Contains(atStart, name) {
			continue
		}
		values = append(values, []byte(name), []byte(set[name]))
		b.WriteString(", set_config($" + strconv.Itoa(len(values)-1) + ", $" + strconv.Itoa(len(values)) + ", false)")
	}
	return b.String(), values
}

// processOf runs a statement whose first column is the number of the server's process.
func processOf(ctx context.Context, conn *pgconn.PgConn, statement string, values [][]byte) (pid uint32, err error) {
	result := conn.ExecParams(ctx, statement, values, nil, nil, nil).Read()
	if result.Err != nil {
		return 0, result.Err
	}
	if len(result.Rows) != 1 {
		return 0, errors.New("the server does not say which of its processes answers")
	}
	number, err := strconv.ParseUint(string(result.Rows[0][0]), 10, 32)
	return uint32(number), err
}

const (
	// looks is how often a pooler is looked at: while others use it, too, it can give a
	// client the same session several times.
	looks = 3
	// lookPatience bounds them. A pooler that has a session for each client may have none
	// left for a second one.
	lookPatience = time.Second
)

// keepsSessions finds out whether a pooler keeps a session of the server for each client: a
// second client is never given that of the first, and the first has the same each time.
func keepsSessions(ctx context.Context, config *pgconn.Config, first *pgconn.PgConn, pid uint32) error {
	patient, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	other := config.Copy()
	other.AfterConnect = nil
	second, err := pgconn.ConnectConfig(patient, other)
	if err != nil {
		return nil // the pooler has no session left, as those of all clients are kept
	}
	defer second.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is held back
	for range looks {
		theirs, err := processOf(patient, second, "SELECT pg_backend_pid()", nil)
		if err != nil {
			return nil // as above
		}
		ours, err := processOf(ctx, first, "SELECT pg_backend_pid()", nil)
		if err != nil {
			return err
		}
		if ours != pid || theirs == pid {
			return ErrPooled
		}
	}
	return nil
}
