package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// Facts about the server.
var (
	// ErrUnreachable: no connection to the server could be made, or it was lost.
	ErrUnreachable = errors.New("the PostgreSQL server cannot be reached")
	// ErrRefused: the server answers and does not let us in, or the database is not there, or
	// it does not show what sslmode asks for.
	ErrRefused = errors.New("the PostgreSQL server refuses the connection")
	// ErrReadOnly: the server only reads, as a standby does.
	ErrReadOnly = errors.New("the PostgreSQL server is read-only")
	// ErrFull: the server's disk is full.
	ErrFull = errors.New("the disk of the PostgreSQL server is full")
	// ErrBusy: the server has no connection left, or others hold what a call waits for.
	ErrBusy = errors.New("the PostgreSQL server is busy")
	// ErrTimeout: the server did not answer in the time that a call has.
	ErrTimeout = errors.New("the PostgreSQL server did not answer in time")
	// ErrForbidden: the role may not do what was to be done.
	ErrForbidden = errors.New("the role may not do this in the PostgreSQL database")
	// ErrMoved: the tables of the project are not there any more. Its threads were moved to
	// another store, or somebody has dropped them.
	ErrMoved = errors.New("the project is not on the PostgreSQL server any more")
	// ErrUnknownOutcome: the connection was lost after COMMIT was sent, and the server can
	// not say any more whether it was done. To repeat the call is safe, as all calls of a
	// store can be repeated; its answer may be that somebody else was first.
	ErrUnknownOutcome = errors.New("whether the PostgreSQL server has committed is not known")
)

// Error is what went wrong with the server. Its text names host, database and user, and
// never a password. It wraps one of the facts above, [store.ErrAway], and Err.
type Error struct {
	Server string // "user@host:port/database"
	Fact   error  // one of the above
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%v (%s): %v", e.Fact, e.Server, reason(e.Err))
}

func (e *Error) Unwrap() []error { return []error{e.Fact, store.ErrAway, e.Err} }

// Try says what the person who keeps the server can do.
func (e *Error) Try() string {
	switch {
	case errors.Is(e.Fact, ErrUnreachable):
		return "psql to the same URL; see that the server runs and that the network lets this machine through"
	case errors.Is(e.Fact, ErrRefused):
		return "psql to the same URL; see user, password, database and pg_hba.conf, and sslmode in the URL"
	case errors.Is(e.Fact, ErrReadOnly):
		return "name the primary in the URL, or several hosts with target_session_attrs=read-write"
	case errors.Is(e.Fact, ErrFull):
		return "make room on the server's disk; what was committed is kept"
	case errors.Is(e.Fact, ErrBusy):
		return "again in a moment; if it stays so, raise max_connections or look for long transactions in pg_stat_activity"
	case errors.Is(e.Fact, ErrForbidden):
		return "open the store once as the role that owns its tables, and grant what the guide postgres lists"
	case errors.Is(e.Fact, ErrMoved):
		return "ask who moved the threads where they are now, or see rye-mcp store status; then start again what still works by this address"
	case errors.Is(e.Fact, ErrPooled):
		return "connect past the pooler, or have it keep a session for each client (pgbouncer: pool_mode = session); rye-mcp help postgres"
	case errors.Is(e.Fact, ErrUnknownOutcome):
		return "repeat the call"
	}
	return "again; if it stays so, look at the server's load and at locks in pg_stat_activity"
}

// reason is the text of a driver's error without what we say ourselves.
func reason(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		text := pg.Message + " (SQLSTATE " + pg.Code + ")"
		if pg.Detail != "" {
			text += ": " + pg.Detail
		}
		return text
	}
	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return strings.Join(attempts(failed.Unwrap().Error()), "; ")
	}
	return err.Error()
}

// attempts are the lines of an error, one for each attempt to connect. With and without TLS
// they often say the same, which is told once.
func attempts(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// factOf sorts the errors of the driver. Nil is an error that says nothing of the server.
func factOf(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return factOfCode(pg.Code)
	}
	var failed *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.Is(err, ErrPooled):
		return ErrPooled
	case isUntrusted(err):
		return ErrRefused
	case errors.As(err, &failed):
		return ErrUnreachable
	case errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	case isLost(err), errors.As(err, &network):
		return ErrUnreachable
	}
	return nil
}

// isUntrusted reports whether a server was reached that does not show that it is the one
// that the URL asks for. That is not the same as a server that is away: the user may have
// allowed to go on without the server then, and an attacker in between must not be able to
// bring that about.
func isUntrusted(err error) bool {
	_, chain := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	network, _ := errors.AsType[*net.OpError](err)
	alert := network != nil && network.Op == "remote error"                                                                 // crypto/tls: the other side ends the handshake, as with a client's certificate
	return chain || authority || host || invalid || alert || strings.Contains(err.Error(), "server refused TLS connection") // pgconn has no value for it
}

// factOfCode sorts SQLSTATE codes, see appendix A of PostgreSQL's documentation.
func factOfCode(code string) error {
	switch code {
	case "28000", "28P01", "3D000", "0LP01", "55000", "42704": // authorization, no such database, database not accepting connections, no such setting
		return ErrRefused
	case "25006": // read_only_sql_transaction
		return ErrReadOnly
	case "53100": // disk_full
		return ErrFull
	case "53300", "55P03", "53200", "53400": // too_many_connections, lock_not_available, out_of_memory
		return ErrBusy
	case "57014", "25P03", "57P05": // query_canceled by statement_timeout, idle timeouts
		return ErrTimeout
	case "42501": // insufficient_privilege
		return ErrForbidden
	case "42P01", "3F000": // undefined_table, invalid_schema_name
		return ErrMoved
	case "57P01", "57P02", "57P03", "57P04": // shutdown, crash, starting up, database dropped
		return ErrUnreachable
	}
	if strings.HasPrefix(code, "08") { // connection_exception
		return ErrUnreachable
	}
	return nil
}

// isLost reports whether a connection has ended under a call.
func isLost(err error) bool {
	return pgconn.SafeToRetry(err) || errors.Is(err, net.ErrClosed) || isEOF(err) || errors.Is(err, driver.ErrBadConn)
}
