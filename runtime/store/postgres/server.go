package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Server is a PostgreSQL database that has projects. It is safe for concurrent use.
type Server struct {
	opts   Options
	config *pgxpool.Config // of a connection, without search_path
	name   string          // for people
	pool   *pgxpool.Pool   // search_path is the schema of the fleet

	sessions sessions
	clock    serverClock
}

// fleetSchema has what all projects share.
const fleetSchema = "rye"

// Connect connects to a server and brings what all projects share up to date. An error
// says host, database and user, and wraps [ErrUnreachable], [ErrRefused] or another fact
// of this package; the URL's form is [ErrBadURL]; the schema of a newer binary
// [store.ErrTooNew]. Ctx bounds the connecting only.
func Connect(ctx context.Context, opts Options) (*Server, error) {
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
func Lookup(ctx context.Context, opts Options, name string) (*Server, *Store, error) {
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
	opts = opts.withDefaults()
	config, err := opts.config()
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

func (o Options) withDefaults() Options {
	if o.Application == "" {
		o.Application = "rye-mcp"
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return o
}

// newPool returns a pool whose connections see one schema. It connects when it is used.
func (s *Server) newPool(ctx context.Context, schema string) (*pgxpool.Pool, error) {
	config := s.config.Copy()
	config.ConnConfig.RuntimeParams["search_path"] = schema
	s.sessions.prepare(&config.ConnConfig.Config)
	return pgxpool.NewWithConfig(ctx, config)
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

// schemaOf returns the schema of a project: rye_, what of its name can stand in one, and
// the beginning of the SHA-256 of the name.
func schemaOf(project string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, project)
	sum := sha256.Sum256([]byte(project))
	const room = 63 - len("rye_") - len("_") - 12 // of an identifier
	return "rye_" + slug[max(0, len(slug)-room):] + "_" + hex.EncodeToString(sum[:6])
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
