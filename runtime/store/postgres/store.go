package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/link"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
)

// Store is the store of one project. It is safe for concurrent use.
type Store struct {
	*sqlstore.Store

	server *Server
	pool   *pgxpool.Pool
	db     *sql.DB // the same connections, for the statements of sqlstore
	schema string

	listener listener
	hinter   *hinter
	closed   atomic.Bool
	closing  sync.Once
}

var _ store.Store = (*Store)(nil)

// ErrClosed says that a store was closed.
var ErrClosed = errors.New("the thread store was closed")

// errNoName says that a project cannot be told from others.
var errNoName = errors.New("a project on PostgreSQL needs a name")

// Project opens the store of a project, and makes it where there is none. The name is
// what machines that work on one project agree on.
func (s *Server) Project(ctx context.Context, name string) (*Store, error) {
	return s.open(ctx, name, s.upToDate)
}

// Find is Project for readers: it returns nil where there is no such project, and makes
// none.
func (s *Server) Find(ctx context.Context, name string) (*Store, error) {
	found := true
	st, err := s.open(ctx, name, func(ctx context.Context, pool *pgxpool.Pool, t tables) error {
		current, err := s.versionOf(ctx, pool, "SELECT "+newestVersion("goose_db_version"))
		if found = current > 0; err != nil || !found {
			return err
		}
		return s.from(ctx, t, current)
	})
	if err == nil && !found {
		return nil, st.Close() //nolint:nilnil // as it says
	}
	return st, err
}

// open opens the store of a project after prepare has looked at its tables.
func (s *Server) open(ctx context.Context, name string, prepare func(context.Context, *pgxpool.Pool, tables) error) (*Store, error) {
	if name == "" {
		return nil, errNoName
	}
	schema := link.SchemaOf(name)
	pool, err := s.newPool(ctx, schema)
	if err != nil {
		return nil, s.explain(err)
	}
	if err := prepare(ctx, pool, project(name, schema)); err != nil {
		pool.Close()
		return nil, s.explain(err)
	}
	st := &Store{server: s, pool: pool, db: openDB(pool), schema: schema}
	st.hinter, st.listener = newHinter(st), listener{store: st, poll: s.opts.Poll}
	nothing, nobody := func(bool) string { return "" }, func(bool) {}
	registry := &database{store: st, lock: "registry", behind: nothing, committed: st.hinter.hint}
	ledger := &database{store: st, lock: "ledger", behind: nothing, committed: nobody}
	if s.opts.Alone {
		registry.behind, registry.committed = hintBehind(schema), nobody
	}
	st.Store = sqlstore.New(registry, ledger, sqlstore.PostgreSQL, s.opts.Now)
	return st, nil
}

// Pool has connections whose search_path is the project's schema.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Explain gives an error of the driver the words of this package, for users of Pool.
func (s *Store) Explain(ctx context.Context, err error) error { return s.explained(ctx, err) }

// Schema is the name of the project's schema. It needs no quotes.
func (s *Store) Schema() string { return s.schema }

// Changes implements [store.Watcher]. After Close the channel is closed from the start.
func (s *Store) Changes(ctx context.Context) <-chan struct{} { return s.listener.listenFor(ctx, false) }

// Milestones implements [store.Watcher], as Changes does.
func (s *Store) Milestones(ctx context.Context) <-chan struct{} {
	return s.listener.listenFor(ctx, true)
}

// Close ends every channel of Changes, tells others of the last commits and closes the
// connections. Later calls fail.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.listener.close()
		s.hinter.close()
		err = s.db.Close()
		s.pool.Close()
	})
	return err
}
