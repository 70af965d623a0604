package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestStateKeys: the keys of what threads leave are the user's own and that of the user's fleet.
// What a project says of a store has no part in that, even where it cannot be read.
func TestStateKeys(t *testing.T) {
	t.Parallel()
	dir, user := realDir(t), realDir(t)
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, ".ai", "config", "agent", "store.yaml"), "store: [\n")
	own, err := sign.EnsureState(user, nil)
	if err != nil {
		t.Fatal(err)
	}
	sys := testSystem(dir, map[string]string{"USER_SPACE": user})
	keys, err := stateKeys(sys, spacesOf(dir, user))
	if err != nil || len(keys) != 1 || !keys[0].Equal(own.Public()) {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}
