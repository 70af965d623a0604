package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// ownServer is a store that has its connections for itself.
type ownServer struct {
	*postgres.Store
	server *postgres.Server
}

func (s ownServer) Close() error { return errors.Join(s.Store.Close(), s.server.Close()) }

// shared is a project in a database that processes share.
var shared = crowdtest.Engine{
	Make: pgtest.Server,
	Open: func(ctx context.Context, url string) (store.Store, error) {
		s, err := postgres.Connect(ctx, postgres.Options{URL: url, Connections: 2})
		if err != nil {
			return nil, err
		}
		st, err := s.Project(ctx, "shared")
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return ownServer{st, s}, nil
	},
	Budgeted: func(ctx context.Context, s store.Store) ([]thread.ID, error) {
		rows, err := s.(ownServer).Pool().Query(ctx, "SELECT thread_id FROM budgets ORDER BY thread_id")
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[thread.ID])
	},
	Lock: crowdtest.Locks(process.Acquire, process.ErrLocked),
}

func TestLedgerSurvivesKills(t *testing.T) {
	t.Parallel()
	shared.LedgerSurvivesKills(t)
}

func TestLedgerOfFamilies(t *testing.T) {
	t.Parallel()
	shared.LedgerOfFamilies(t)
}

func TestProcessesShareTheQueue(t *testing.T) {
	t.Parallel()
	shared.ShareTheQueue(t)
}

func TestStorm(t *testing.T) {
	t.Parallel()
	shared.Storm(t, 8)
}
