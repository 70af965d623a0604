package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// shared is a store in a folder that processes share.
var shared = crowdtest.Engine{
	Make: func(t testing.TB) string { return t.TempDir() },
	Open: func(ctx context.Context, dir string) (store.Store, error) { return Open(ctx, dir, Options{}) },
	Budgeted: func(ctx context.Context, s store.Store) (ids []thread.ID, err error) {
		err = s.(*Store).ledger.Read(ctx, func(ctx context.Context, db *sql.DB) error {
			ids = nil
			rows, err := db.QueryContext(ctx, "SELECT thread_id FROM budgets ORDER BY thread_id")
			if err != nil {
				return err
			}
			defer rows.Close() //nolint:errcheck // Err below reports what the iteration met
			for rows.Next() {
				var id thread.ID
				if err := rows.Scan(&id); err != nil {
					return err
				}
				ids = append(ids, id)
			}
			return rows.Err()
		})
		return ids, err
	},
	Lock: crowdtest.Locks(process.Acquire, process.ErrLocked),
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

// TestStorm: no process of many that write at once is shown that the databases are busy.
func TestStorm(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	shared.Storm(t, 32)
}
