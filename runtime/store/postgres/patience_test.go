package postgres_test

import (
	"errors"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestOpenPatiently: the process of a thread opens its store while the server starts again;
// whoever is not to be patient is told at once that it is away.
func TestOpenPatiently(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	url := cluster.Database(t)
	open(t, connect(t, url), "example.org/team/work")
	cluster.Stop(t)
	if _, _, err := postgres.Lookup(t.Context(), postgres.Options{URL: url}, "example.org/team/work"); !errors.Is(err, postgres.ErrUnreachable) {
		t.Fatalf("without patience: %v", err)
	}
	asked, done := make(chan struct{}), make(chan error)
	go func() {
		close(asked)
		server, st, err := postgres.Lookup(t.Context(), postgres.Options{URL: url, Patient: true}, "example.org/team/work")
		if err == nil {
			err = errors.Join(st.Close(), server.Close())
		}
		done <- err
	}()
	<-asked
	cluster.Up(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
