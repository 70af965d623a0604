package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
)

// movesWhole shows when a test ends that what its store has can be moved: another store
// that was filled from it, in the folder empty, has the same rows.
func movesWhole(t *testing.T, from *Store, empty string) *Store {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := from.Content(ctx); err != nil && strings.Contains(err.Error(), "closed") {
			return // by the test
		}
		if err := sameAfterFill(ctx, t, from, empty); err != nil {
			t.Errorf("moved: %v", err)
		}
	})
	return from
}

func sameAfterFill(ctx context.Context, t *testing.T, from *Store, empty string) (err error) {
	to, err := Open(ctx, empty, unpolled)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for range 2 { // everything is done twice
		if err := to.Fill(ctx, from); err != nil {
			return err
		}
	}
	had, err := from.Content(ctx)
	if err != nil {
		return err
	}
	has, err := to.Content(ctx)
	if err != nil {
		return err
	}
	if !had.Same(has) || had.Threads != has.Threads || had.Spend != has.Spend || had.Settled != has.Settled || had.Rows != has.Rows {
		t.Errorf("moved: %+v\nwant %+v", has, had)
	}
	return to.Check(ctx)
}

// TestTransferKnowsAllTables: a table that a migration adds is moved, too.
func TestTransferKnowsAllTables(t *testing.T) {
	t.Parallel()
	st := open(t, t.TempDir(), unpolled)
	content, err := st.Content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*database{st.registry, st.ledger} {
		err := d.Read(t.Context(), func(ctx context.Context, db *sql.DB) error {
			rows, err := db.QueryContext(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'`)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }() // only read
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					return err
				}
				if content.Hashes[name] == "" {
					t.Errorf("table %s is not moved", name)
				}
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFillRefuses: rows that are there are left as they are.
func TestFillRefuses(t *testing.T) {
	t.Parallel()
	from, to := open(t, t.TempDir(), unpolled), open(t, t.TempDir(), unpolled)
	mustRegister(t, from, newThread("a", ""))
	mustRegister(t, to, newThread("b", ""))
	before, err := to.Content(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Fill(t.Context(), from); !errors.Is(err, store.ErrOccupied) {
		t.Errorf("%v", err)
	}
	if after, err := to.Content(t.Context()); err != nil || !after.Same(before) {
		t.Errorf("%+v, %v", after, err)
	}
}
