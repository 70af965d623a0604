package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVar makes a process of the test binary die while it writes, instead of testing.
const roleVar = "SHAREDFILE_TEST_ROLE"

func TestMain(m *testing.M) {
	if moment := os.Getenv(roleVar); moment != "" {
		fmt.Fprintln(os.Stderr, playDie(context.Background(), moment, os.Args[1], os.Args[2]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// unpolled leaves Changes to the reports of the operating system: a test that
// needs the regular poll to go on would hang.
var unpolled = Options{Poll: time.Hour}

// book is a file that holds one number.
type book struct {
	*File
	opened atomic.Int64 // files that came into use
	follow error        // why another may not be followed

	state  uint64 // in which known was read
	known  int
	looked atomic.Int64 // how often it was
}

func (*book) Ready(ctx context.Context, db *sql.DB) bool {
	var n int
	return db.QueryRowContext(ctx, "SELECT n FROM number").Scan(&n) == nil
}

func (*book) Prepare(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{
		"PRAGMA journal_mode = WAL", "CREATE TABLE IF NOT EXISTS number (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT",
		"INSERT INTO number (id, n) VALUES (1, 0) ON CONFLICT DO NOTHING", "PRAGMA user_version = 7",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) Opened(userVersion int) {
	if userVersion == 7 {
		b.opened.Add(1)
	}
}

func (b *book) MayFollow() error           { return b.follow }
func (*book) CannotFollow(why error) error { return fmt.Errorf("cannot follow: %w", why) }
func (*book) Explain(err error) error      { return fmt.Errorf("the book: %w", err) }
func paths(dir string) (database, lock string) {
	return filepath.Join(dir, "db"), filepath.Join(dir, "lock")
}

// openBook opens the book in dir; two of one folder stand for two processes.
func openBook(ctx context.Context, dir string, opts Options) (*book, error) {
	b := &book{}
	database, lock := paths(dir)
	var err error
	b.File, err = Open(ctx, database, lock, b, opts)
	return b, err
}

func open(t *testing.T, dir string, opts Options) *book {
	t.Helper()
	b, err := openBook(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func (b *book) write(ctx context.Context, n int) error {
	return b.Write(ctx, Relaxed, func() error { return nil }, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, setNumber, n)
		return err
	})
}

const setNumber = "UPDATE number SET n = ?"

// number reads the number, unless it is known in the state that the file is in.
func (b *book) number(ctx context.Context) (n int, err error) {
	if err := b.Follow(ctx); err != nil {
		return 0, err
	}
	err = b.Read(ctx, func(r Reader) error {
		return r.View.Look(ctx, func(ctx context.Context, now Seen) error {
			if now.State != b.state {
				b.looked.Add(1)
				conn, err := now.Conn(ctx)
				if err != nil {
					return err
				}
				if err := conn.QueryRowContext(ctx, "SELECT n FROM number").Scan(&b.known); err != nil {
					return err
				}
				b.state = now.State
			}
			n = b.known
			return nil
		})
	})
	return n, err
}

func set(t *testing.T, b *book, n int) {
	t.Helper()
	if err := b.write(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// uncounted sets the number as somebody does who knows nothing of this package.
func uncounted(t *testing.T, b *book, n int) {
	t.Helper()
	stranger := Pool(b.path, 1)
	_, err := stranger.ExecContext(t.Context(), setNumber, n)
	if err := errors.Join(err, stranger.Close()); err != nil {
		t.Fatal(err)
	}
}

// inBoth runs a test with connections to read with and without.
func inBoth(t *testing.T, name string, test func(t *testing.T, one bool)) {
	t.Helper()
	for _, one := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s, one connection %t", name, one), func(t *testing.T) {
			t.Parallel()
			test(t, one)
		})
	}
}

// want reads the number twice, the second time from memory.
func want(t *testing.T, b *book, n int) {
	t.Helper()
	for range 2 {
		if got, err := b.number(t.Context()); err != nil || got != n {
			t.Errorf("the number is %d, %v; want %d", got, err, n)
		}
	}
}
