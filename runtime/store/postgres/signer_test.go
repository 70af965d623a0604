package postgres_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
)

// TestSigner: of several machines that say at once which key signs, one decides for all.
func TestSigner(t *testing.T) {
	t.Parallel()
	server, err := postgres.Connect(t.Context(), postgres.Options{URL: pgtest.Server(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	project, err := server.Project(t.Context(), "team/app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = project.Close() })
	said := make(chan string)
	for _, own := range []string{"a", "b", "c", "d"} {
		go func() {
			got, err := project.Signer(t.Context(), own)
			if err != nil {
				t.Error(err)
			}
			said <- got
		}()
	}
	first := <-said
	for range 3 {
		if got := <-said; got != first {
			t.Errorf("one was told %q, another %q", first, got)
		}
	}
}
