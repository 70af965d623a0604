package place

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestFleet: two machines with the same key have the same place, and nobody else has.
func TestFleet(t *testing.T) {
	t.Parallel()
	ours, theirs := t.TempDir(), t.TempDir()
	key, err := sign.EnsureState(ours, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	placed := filepath.Join(theirs, "fleet.pem") // as an operator places it
	text, err := os.ReadFile(sign.StateKeyFile(ours))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(placed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	same, err := sign.LoadFile(placed)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sign.EnsureState(t.TempDir(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const project = "example.org/team/work"
	a, b := Fleet(ours, key, project), Fleet(theirs, same, project)
	doc := struct{ Place string }{a.Seal.Place()}
	signed, err := a.Seal.Encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := b.Seal.Open(signed, &doc); err != nil || at != a.Seal.Place() {
		t.Errorf("the other machine finds it of place %q, %v", at, err)
	}
	if !strings.HasPrefix(a.Dir, ours) || !strings.HasPrefix(b.Dir, theirs) || filepath.Base(a.Dir) != "threads" {
		t.Errorf("kept in %s and %s", a.Dir, b.Dir)
	}
	for name, s := range map[string]State{
		"another project": Fleet(ours, key, project+"2"), "another key": Fleet(ours, other, project),
	} {
		if s.Seal.Place() == a.Seal.Place() || s.Dir == a.Dir {
			t.Errorf("%s has the same place", name)
		}
	}
	if _, err := Fleet(ours, other, project).Seal.Open(signed, &doc); err == nil {
		t.Error("it counts with another key")
	}
}

// TestLoadFile: a key that others can read or replace is refused, wherever it is.
func TestLoadFile(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	if _, err := sign.EnsureState(user, rand.Reader); err != nil {
		t.Fatal(err)
	}
	file := sign.StateKeyFile(user)
	if _, err := sign.LoadFile(filepath.Join(user, "none.pem")); err == nil {
		t.Error("a file that is not there")
	}
	for what, change := range map[string]func() error{
		"readable":    func() error { return os.Chmod(file, 0o644) },
		"replaceable": func() error { return os.Chmod(filepath.Dir(file), 0o777) },
	} {
		if _, err := sign.LoadFile(file); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := sign.LoadFile(file); err == nil {
			t.Errorf("%s: it is used", what)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
