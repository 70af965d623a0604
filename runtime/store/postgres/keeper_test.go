package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestKeeper: nothing is ever lost, a sound database is found sound, and what the deleted
// have left is given back.
func TestKeeper(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	ctx := t.Context()
	f := newFamily(t, connect(t, pgtest.Server(t)), "p")
	for n := range 20 {
		in := newThread("bulky", f.root)
		in.Metadata = fmt.Appendf(nil, `{"n":"%d %s"}`, n, strings.Repeat("x", 4000))
		if _, _, err := store.Register(ctx, f.store, in, nil); err != nil {
			t.Fatal(err)
		}
	}
	if lost, err := f.store.Lost(ctx); lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
	if err := f.store.Check(ctx); err != nil {
		t.Error(err)
	}
	full, err := f.store.Footprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Pool().Exec(ctx, "DELETE FROM threads WHERE directive = 'bulky'"); err != nil {
		t.Fatal(err)
	}
	for _, alone := range []bool{false, true} {
		done, err := f.store.Vacuum(ctx, alone)
		if err != nil || len(done) != 2 || done[0].Name != "registry" || done[1].Name != "ledger" || done[0].Before == 0 {
			t.Errorf("alone %v: %+v, %v", alone, done, err)
		}
	}
	left, err := f.store.Footprint(ctx)
	if err != nil || left.Bytes >= full.Bytes {
		t.Errorf("%d bytes of %d are left, %v", left.Bytes, full.Bytes, err)
	}
}

// TestDamaged: a table whose file is damaged on the disk is found, and named.
func TestDamaged(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{})
	url := c.Database(t)
	s := connect(t, url)
	f := newFamily(t, s, "p")
	f.child()
	var file string
	if err := f.store.Pool().QueryRow(t.Context(), "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('budgets')").Scan(&file); err != nil {
		t.Fatal(err)
	}
	c.Stop(t)
	damage(t, file)
	c.Up(t)
	err := f.store.Check(t.Context())
	var corrupt *store.CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(corrupt.Path, f.store.Schema()+".budgets") {
		t.Errorf("%v", err)
	}
}

// damage writes over the header of the first page of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	out, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.WriteAt([]byte(strings.Repeat("\xff", 24)), 0); err != nil {
		t.Error(err)
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
}

// TestLook: the look notices commits without a hint, and commits while the connection that
// listens is lost.
func TestLook(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{})
	url := c.Database(t)
	s, err := postgres.Connect(t.Context(), postgres.Options{URL: url, Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // of a test
	f := newFamily(t, s, "p")
	changes := f.store.Changes(t.Context())
	noticed := func(turn int) {
		t.Helper()
		_, err := f.store.Pool().Exec(t.Context(), "UPDATE threads SET turns = $1 WHERE thread_id = $2", turn, string(f.root))
		if err != nil {
			t.Fatal(err)
		}
		for rec, err := f.store.Get(t.Context(), f.root); rec.Cost.Turns < turn; rec, err = f.store.Get(t.Context(), f.root) {
			if err != nil {
				t.Fatal(err)
			}
			<-changes
		}
		<-changes // it comes, whoever has seen the row before
	}
	noticed(1)
	c.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%listens%'")
	noticed(2)
	c.Restart(t)
	f.store.Pool().Reset()
	noticed(3)
}
