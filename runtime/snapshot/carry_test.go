package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
)

// TestCarry: a snapshot is the same in another place, signed there, under a name of that
// place, again after it was carried once. One of which something is missing or altered is not
// carried.
func TestCarry(t *testing.T) {
	t.Parallel()
	from, to := newScene(t), newScene(t)
	to.seal = newSeal(t, "another place")
	write(t, from.project, ".ai/tools/team/a.py", "print()")
	starts, gets := from.keeper(t, nil), to.keeper(t, localIn(t.TempDir(), to.clock))
	pins, err := starts.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var there snapshot.Hash
	for range 2 {
		if there, err = starts.Carry(t.Context(), gets, pins.Name()); err != nil || there == pins.Name() {
			t.Fatalf("carried as %s, %v", there, err)
		}
	}
	was, err := starts.Open(t.Context(), pins.Name())
	if err != nil {
		t.Fatal(err)
	}
	is, err := gets.Open(t.Context(), there)
	if err != nil || len(is.Files) != len(was.Files) || is.Files[0] != was.Files[0] || is.Program != was.Program {
		t.Errorf("there it is %+v, %v", is, err)
	}
	blob := filepath.Join(from.store.Dir(), "blobs", string(was.Files[0].Hash[:2]), string(was.Files[0].Hash))
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(blob, []byte("altered"), 0o600) },
		func() error { return os.Remove(blob) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := starts.Carry(t.Context(), newScene(t).keeper(t, nil), pins.Name()); !errors.Is(err, snapshot.ErrUnusable) {
			t.Errorf("a broken one: %v", err)
		}
	}
}
