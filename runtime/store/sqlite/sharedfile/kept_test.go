package sharedfile

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// keptConn is a pinned connection to a new database with a table of some numbers.
func keptConn(t *testing.T) *sql.Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pool := Pool(path, 1)
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, query := range []string{"CREATE TABLE numbers (n INTEGER) STRICT", "INSERT INTO numbers VALUES (1), (2), (3)"} {
		if _, err := conn.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func inside(t *testing.T, conn *sql.Conn, f func(*connection)) {
	t.Helper()
	err := conn.Raw(func(c any) error {
		f(c.(*connection))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A statement is met again while its rows are being read, and answers both.
func TestKeptStatementWithinItself(t *testing.T) {
	t.Parallel()
	conn := keptConn(t)
	const query = "SELECT n FROM numbers WHERE n >= ? ORDER BY n"
	var got []int
	nested := func() {
		outer, err := conn.QueryContext(t.Context(), query, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close() //nolint:errcheck // the rows are at their end
		for outer.Next() {
			var n, first int
			if err := outer.Scan(&n); err != nil {
				t.Fatal(err)
			}
			if err := conn.QueryRowContext(t.Context(), query, n-1).Scan(&first); err != nil {
				t.Fatal(err)
			}
			got = append(got, n, first)
		}
		if err := outer.Err(); err != nil {
			t.Fatal(err)
		}
	}
	nested()
	nested()
	if want := fmt.Sprint([]int{2, 1, 3, 2, 2, 1, 3, 2}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// A kept statement follows a change of the schema, and fails for itself alone.
func TestKeptStatementLasts(t *testing.T) {
	t.Parallel()
	conn := keptConn(t)
	const add = "INSERT INTO numbers (n) VALUES (?)"
	for _, step := range []struct {
		query string
		arg   any
		fails bool
	}{
		{add, 4, false},
		{add, "text", true},
		{add, 5, false},
		{"ALTER TABLE numbers ADD COLUMN word TEXT", nil, false},
		{add, 6, false},
		{"nonsense", nil, true},
	} {
		var args []any
		if step.arg != nil {
			args = append(args, step.arg)
		}
		if _, err := conn.ExecContext(t.Context(), step.query, args...); (err != nil) != step.fails {
			t.Errorf("%s %v: %v", step.query, step.arg, err)
		}
	}
	var sum int
	if err := conn.QueryRowContext(t.Context(), "SELECT sum(n) FROM numbers").Scan(&sum); err != nil || sum != 21 {
		t.Errorf("the sum is %d, %v", sum, err)
	}
}

func TestKeptStatementsAreBounded(t *testing.T) {
	t.Parallel()
	conn := keptConn(t)
	for i := range 2 * maxKept {
		var n int
		if err := conn.QueryRowContext(t.Context(), fmt.Sprintf("SELECT n + %d FROM numbers LIMIT 1", i)).Scan(&n); err != nil || n != 1+i {
			t.Fatalf("%d: %d, %v", i, n, err)
		}
	}
	inside(t, conn, func(c *connection) {
		if len(c.kept) != maxKept {
			t.Errorf("%d statements are kept", len(c.kept))
		}
	})
}

// A statement that is used again and again stays, however many others there were before
// it and are beside it, and so does one that is read from.
func TestKeptStatementStays(t *testing.T) {
	t.Parallel()
	conn := keptConn(t)
	const often, read = "SELECT sum(n) FROM numbers", "SELECT n FROM numbers"
	rows, err := conn.QueryContext(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // the rows are at their end, or the test has failed
	ask := func(query string) {
		var n int
		if err := conn.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxKept {
		ask(fmt.Sprintf("SELECT %d", i))
	}
	var first *keptStatement
	for i := range 2 * maxKept {
		ask(often)
		ask(fmt.Sprintf("SELECT -%d", i))
		stays := false
		inside(t, conn, func(c *connection) {
			if i == 0 {
				first = c.kept[often]
			}
			stays = first != nil && c.kept[often] == first && c.kept[read] != nil
		})
		if !stays {
			t.Fatalf("a statement was prepared anew after %d others", i)
		}
	}
	n := 0
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// Every commit has the durability that was asked for, however often it changes.
func TestDurabilityIsSet(t *testing.T) {
	t.Parallel()
	conn := keptConn(t)
	for _, level := range []Durability{Relaxed, Relaxed, Durable, Relaxed, Durable, Durable} {
		inside(t, conn, func(c *connection) {
			if err := c.setDurability(context.Background(), level); err != nil {
				t.Error(err)
			}
		})
		var got int
		if err := conn.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := map[Durability]int{Relaxed: 1, Durable: 2}[level]; got != want {
			t.Errorf("after %s it is %d", level, got)
		}
	}
}
