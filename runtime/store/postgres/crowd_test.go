package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
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
		s, err := postgres.Connect(ctx, postgres.Options{URL: url, Connections: 2, Application: crowdMember})
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
	Alone: alone,
	Lock:  crowdtest.Locks(process.Acquire, process.ErrLocked),
}

// crowdMember is what this process calls its sessions.
var crowdMember = fmt.Sprintf("rye-mcp (process %d)", os.Getpid())

// alone waits until the server has let go of all sessions of other processes: it goes on
// with what a killed process has asked for.
func alone(ctx context.Context, s store.Store) error {
	for others := true; others; {
		err := s.(ownServer).Pool().QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND NOT starts_with(application_name, $1))`, crowdMember).Scan(&others)
		if err != nil {
			return err
		}
	}
	return nil
}

func TestLedgerSurvivesKills(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	shared.LedgerSurvivesKills(t)
}

func TestLedgerOfFamilies(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	shared.LedgerOfFamilies(t)
}

func TestProcessesShareTheQueue(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	shared.ShareTheQueue(t)
}

func TestStorm(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	shared.Storm(t, 8)
}
