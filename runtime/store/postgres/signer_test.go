package postgres_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgstoretest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestSigner: of several machines that say at once which key signs, one decides for all.
func TestSigner(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	project := pgstoretest.Project(t, pgstoretest.Connect(t), "team/app")
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
