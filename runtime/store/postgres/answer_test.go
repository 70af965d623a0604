package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlstore"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// openAt opens a project of a database until the test ends.
func openAt(t testing.TB, url string) *Store {
	t.Helper()
	server, err := Connect(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	st, err := server.Project(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// TestWriteFrom: what a transaction begins with was asked when it began, is given out once,
// for that query with its values alone, and in the types that database/sql knows. A transaction whose first
// statement fails leaves the lock to the next.
func TestWriteFrom(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	st := openAt(t, pgtest.Server(t))
	d := &database{store: st, lock: "registry", behind: func(bool) string { return "" }, committed: func(bool) {}}
	const counted = "SELECT count(*), CAST(7 AS INTEGER), CAST(NULL AS TEXT), ?1 FROM shown_plans"
	asked := sqlstore.Statement{Query: counted, Args: []any{sqlstore.PostgreSQL}}
	first := func(want int, before string) {
		t.Helper()
		err := d.WriteFrom(t.Context(), sqlstore.Durable, asked, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO shown_plans (plan_key, digest, shown_at) VALUES (?, '', 1)", before); err != nil {
				return err
			}
			for _, want := range []int{want, want + 1} { // the second is asked now
				var rows, seven int
				var null sql.NullString
				var text string
				if err := tx.QueryRowContext(ctx, "SELECT 8").Scan(&seven); err != nil || seven != 8 {
					t.Errorf("another query gives %d, %v", seven, err)
				}
				err := tx.QueryRowContext(ctx, counted, "other").Scan(&rows, &seven, &null, &text)
				if err != nil || text != "other" {
					t.Errorf("with another value it gives %q, %v", text, err)
				}
				err = tx.QueryRowContext(ctx, counted, asked.Args...).Scan(&rows, &seven, &null, &text)
				if err != nil || rows != want || seven != 7 || null.Valid || text != "postgres" {
					t.Errorf("%d rows, %d, %v, %q, %v; want %d rows", rows, seven, null, text, err, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first(0, "a")
	failing := sqlstore.Statement{Query: "SELECT 1 / (count(*) - 1) FROM shown_plans"}
	err := d.WriteFrom(t.Context(), sqlstore.Durable, failing, func(context.Context, *sql.Tx) error { return errors.New("was run") })
	if !isDivision(err) {
		t.Errorf("a division by zero: %v", err)
	}
	first(1, "b")
}

func isDivision(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "22012"
}

// TestErrorsOfTheServer: each error by which a call ends whose server is away, or late, says so
// in words of this package.
func TestErrorsOfTheServer(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	st := openAt(t, pgtest.Server(t))
	st.server.opts.Timeout = 100 * time.Millisecond
	d := &database{store: st, lock: "registry", behind: func(bool) string { return "" }, committed: func(bool) {}}
	for name, tt := range map[string]struct {
		f    func(context.Context, *sql.Tx) error
		want error
	}{
		"connection lost": {func(context.Context, *sql.Tx) error { return driver.ErrBadConn }, ErrUnreachable},
		"time over before the commit": {func(ctx context.Context, tx *sql.Tx) error {
			<-ctx.Done()
			for {
				if _, err := tx.ExecContext(context.WithoutCancel(ctx), "SELECT 1"); errors.Is(err, sql.ErrTxDone) {
					return nil
				}
			}
		}, ErrTimeout},
	} {
		st.server.away.last.Store(nil) // each is the first that meets it
		err := d.Write(t.Context(), sqlstore.Durable, tt.f)
		if fault, ok := errors.AsType[*Error](err); !ok || !errors.Is(fault.Fact, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
