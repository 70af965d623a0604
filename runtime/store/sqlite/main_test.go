package sqlite

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// roleVar makes a process of the test binary play a role instead of testing.
const roleVar = "SQLITE_TEST_ROLE"

func TestMain(m *testing.M) {
	shared.Play()
	if role := os.Getenv(roleVar); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Each check is hundreds of transactions, which the race detector makes thirty
	// times slower; the command line can ask for more.
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// unpolled leaves Changes to the reports of the operating system: a test that
// needs the regular poll to go on would hang.
var unpolled = Options{Poll: time.Hour}

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func open(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// made is the folder of an empty store, which is made once: its tables take longer than
// most of what is tested with them.
func made(t testing.TB) (folder func(t testing.TB) string) {
	t.Helper()
	template := t.TempDir()
	s, err := Open(t.Context(), template, unpolled)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	folder := made(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, folder(t), unpolled) })
}

// TestConformanceOfOneConnection: nothing that a store does waits for itself.
func TestConformanceOfOneConnection(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	folder := made(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return movesWhole(t, open(t, folder(t), Options{Poll: unpolled.Poll, OneConnection: true}), folder(t))
	})
}

func claimNothing(thread.ID) error { return nil }

func newThread(directive string, parent thread.ID) store.NewThread {
	return store.NewThread{Kind: thread.KindDirective, Directive: directive, ParentID: parent, MaxSpawns: 1 << 30, Now: testTime}
}

func mustRegister(t testing.TB, s *Store, n store.NewThread) thread.ID {
	t.Helper()
	rec, _, err := store.Register(t.Context(), s, n, claimNothing)
	if err != nil {
		t.Fatal(err)
	}
	return rec.ThreadID
}

func running(t testing.TB, s *Store, directive string, parent thread.ID) thread.ID {
	t.Helper()
	id := mustRegister(t, s, newThread(directive, parent))
	if _, err := storetest.As(s).Apply(t.Context(), store.Claimed(id, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
		t.Fatal(err)
	}
	return id
}

// beside executes a statement in a database over a connection of its own, which
// stands in no queue and counts nothing.
func beside(t testing.TB, d *database, statement string, args ...any) (err error) {
	t.Helper()
	db := sharedfile.Pool(d.path, 1)
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(t.Context(), statement, args...)
	return err
}
