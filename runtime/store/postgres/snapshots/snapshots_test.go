package snapshots_test

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot/snapshottest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/snapshots"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, clock *snapshottest.Clock) snapshots.Store {
	t.Helper()
	project := pgstoretest.Project(t, pgstoretest.Connect(t), "example.org/team/work")
	return snapshots.Store{At: project, Now: clock.Now}
}

// TestStore holds snapshots on PostgreSQL against the promises of all.
func TestStore(t *testing.T) {
	t.Parallel()
	snapshottest.Run(t, func(t *testing.T, clock *snapshottest.Clock) snapshot.Store { return open(t, clock) })
}

// TestAttackChangedRow: somebody who may write to the database changes the content of a snapshot there.
// Reading it is an error that names the content, and the machine that has the right one puts it back.
func TestAttackChangedRow(t *testing.T) {
	t.Parallel()
	s := open(t, snapshottest.NewClock())
	h := snapshot.HashOf([]byte("right"))
	put := func() {
		if err := s.Put(t.Context(), h, 5, strings.NewReader("right")); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (string, error) {
		got, err := snapshot.ReadAll(t.Context(), s, h, 100)
		return string(got), err
	}
	for _, content := range []string{"wrong", "", "right and more"} {
		put()
		if got, err := read(); err != nil || got != "right" {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := s.At.Pool().Exec(t.Context(), `UPDATE snapshot_blobs SET content = $1::bytea, size = octet_length($1::bytea)`, []byte(content)); err != nil {
			t.Fatal(err)
		}
		_, err := read()
		if altered, is := errors.AsType[*snapshot.AlteredError](err); !is || altered.Hash != h {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestRestart: a snapshot is kept and read while the server starts again.
func TestRestart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	s := snapshots.Store{At: pgstoretest.Project(t, pgstoretest.ConnectTo(t, cluster.Database(t)), "example.org/team/work"), Now: snapshottest.NewClock().Now}
	h := snapshot.HashOf([]byte("right"))
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"put", func() error { return s.Put(t.Context(), h, 5, strings.NewReader("right")) }},
		{"get", func() error {
			got, err := snapshot.ReadAll(t.Context(), s, h, 100)
			if err == nil && string(got) != "right" {
				err = errors.New("it is " + string(got))
			}
			return err
		}},
	} {
		cluster.Stop(t)
		done := make(chan error)
		go func() { done <- call.do() }()
		cluster.Up(t)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", call.name, err)
		}
	}
}
