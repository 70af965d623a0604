package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/link"
)

// Options of a connection to a server.
type Options = link.Options

// DefaultTimeout of a call. Locks are held for milliseconds.
const DefaultTimeout = link.DefaultTimeout

var (
	// ErrBadURL says that a store's URL is not one of PostgreSQL.
	ErrBadURL = link.ErrBadURL
	// ErrPooled says that a pooler gives the statements of one client to several sessions.
	ErrPooled = link.ErrPooled
)

// Server is a PostgreSQL database that has projects. It is safe for concurrent use.
type Server struct {
	opts   Options
	config *pgxpool.Config // of a connection, without search_path
	name   string          // for people
	pool   *pgxpool.Pool   // search_path is the schema of the fleet

	sessions link.Sessions
	clock    serverClock
	away     away
}

// fleetSchema has what all projects share.
const fleetSchema = "rye"

// Connect connects to a server and brings what all projects share up to date. An error
// says host, database and user, and wraps [ErrUnreachable], [ErrRefused] or another fact
// of this package; the URL's form is [ErrBadURL]; the schema of a newer binary
// [store.ErrTooNew]. Ctx bounds the connecting only.
func Connect(ctx context.Context, opts Options) (s *Server, err error) {
	err = patiently(ctx, opts, func() error {
		s, err = connect(ctx, opts)
		return err
	})
	return s, err
}

// patiently opens something, and again while the server is away, where calls are to be
// patient: a thread that has just been started would end otherwise.
func patiently(ctx context.Context, opts Options, open func() error) error {
	patience, cancel := context.WithTimeout(ctx, opts.WithDefaults().Timeout)
	defer cancel()
	var wait backoff
	for {
		err := open()
		if !opts.Patient || !errors.Is(err, ErrUnreachable) || wait.next(patience) != nil {
			return err
		}
	}
}

func connect(ctx context.Context, opts Options) (*Server, error) {
	s, err := prepare(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := s.upToDate(ctx, s.pool, fleet); err != nil {
		s.pool.Close()
		return nil, s.explain(err)
	}
	return s, nil
}

// Lookup is Connect and Project at once, for a process of one project: where the tables of
// both are there and up to date it makes one connection and one query. Where there is no such
// project it makes nothing, and both are nil.
func Lookup(ctx context.Context, opts Options, name string) (s *Server, st *Store, err error) {
	err = patiently(ctx, opts, func() error {
		s, st, err = lookup(ctx, opts, name)
		return err
	})
	return s, st, err
}

func lookup(ctx context.Context, opts Options, name string) (*Server, *Store, error) {
	s, err := prepare(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	found := true
	st, err := s.open(ctx, name, func(ctx context.Context, pool *pgxpool.Pool, t tables) error {
		both, err := s.bothVersions(ctx, pool)
		if found = both > 0; err != nil || !found {
			return err
		}
		return s.bothFrom(ctx, t, both)
	})
	if err == nil && found {
		return s, st, nil
	}
	if st != nil {
		err = st.Close()
	}
	s.pool.Close()
	return nil, nil, err
}

// prepare returns a server that has not been connected to.
func prepare(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.WithDefaults()
	config, err := opts.Config()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, config: config, name: nameOf(&config.ConnConfig.Config)}
	if opts.Now == nil {
		s.opts.Now = s.clock.now
	}
	if s.pool, err = s.newPool(ctx, fleetSchema); err != nil {
		return nil, s.explain(err)
	}
	return s, nil
}

// newPool returns a pool whose connections see one schema. It connects when it is used.
func (s *Server) newPool(ctx context.Context, schema string) (*pgxpool.Pool, error) {
	if begun := s.opts.Begun.Take(schema); begun != nil {
		return begun, nil
	}
	return link.Pool(ctx, s.config, schema, &s.sessions)
}

// Pool has connections whose search_path is the schema of the fleet.
func (s *Server) Pool() *pgxpool.Pool { return s.pool }

// Name says which server it is, as user@host:port/database, for people.
func (s *Server) Name() string { return s.name }

// Close closes the connections. The stores of projects are closed before.
func (s *Server) Close() error {
	s.pool.Close()
	return nil
}

// explain gives an error of the driver the words of this package.
func (s *Server) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, already := errors.AsType[*Error](err); already {
		return err
	}
	if fact := factOf(err); fact != nil {
		return &Error{Server: s.name, Fact: fact, Err: err}
	}
	return err
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// nameOf says which server a configuration means, for people: never with a password.
func nameOf(c *pgconn.Config) string {
	host := c.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
	}
	return c.User + "@" + host + "/" + c.Database
}
