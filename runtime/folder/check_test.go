package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	for _, dir := range []string{"real/inner", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(state, "elsewhere"), filepath.Join(state, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", maxNameBytes)
	for id, fits := range map[thread.ID]bool{
		"real/inner": true, "real/new/newer": true, "new": true, thread.ID(long): true,
		"link": false, "link/below": false, "file": false, "file/below": false, thread.ID(long + "x"): false,
	} {
		if err := Check(state, id); (err == nil) != fits || err != nil && !errors.Is(err, thread.ErrUnfit) {
			t.Errorf("%.40s: %v", id, err)
		}
	}
	deep := filepath.Join(state, strings.Repeat("d/", maxPathBytes()/2))
	if err := Check(deep, "a-1"); !errors.Is(err, thread.ErrUnfit) {
		t.Errorf("a path that is too long: %v", err)
	}
}

// TestCheckedNamesCanBeWritten makes everything that a thread with the longest
// name has.
func TestCheckedNamesCanBeWritten(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	dir := Of(state, thread.ID(strings.Repeat("x", maxNameBytes)))
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteMeta(thread.Meta{}, placetest.NewSeal(t)); err != nil {
		t.Error(err)
	}
	if _, err := dir.WriteArtifact(strings.Repeat("0", 64), nil); err != nil {
		t.Error(err)
	}
}

func TestForeignOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	owner, known := place.OwnerOf(info)
	if !known {
		t.Skip("owners are not known here")
	}
	if why := unfit(info, owner+1); !strings.Contains(why, "belongs to user") {
		t.Errorf("another's folder: %q", why)
	}
	for _, user := range []int{owner, 0} {
		if why := unfit(info, user); why != "" {
			t.Errorf("user %d: %q", user, why)
		}
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	write := func(path string) {
		full := filepath.Join(state, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"registry.db", "a/b-1/thread.json", "a/b-1/transcript.jsonl", "a/b-1/artifacts/x/thread.json",
		"a/b-1/c-2/thread.json", "lock-3/thread.lock", "nothing/here.txt",
	} {
		write(path)
	}
	if err := os.Symlink("a", filepath.Join(state, "link")); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := Walk(state, func(f Found) error {
		text := string(f.ID)
		for word, yes := range map[string]bool{" linked": f.Linked, " meta": f.HasMeta && !f.HasWords, " both": f.HasMeta && f.HasWords} {
			if yes {
				text += word
			}
		}
		got = append(got, text)
		return nil
	})
	want := "a/b-1 both,a/b-1/c-2 meta,link linked,lock-3"
	if err != nil || strings.Join(got, ",") != want {
		t.Errorf("found %q, %v; want %q", got, err, want)
	}
	if err := Walk(filepath.Join(state, "missing"), nil); err != nil {
		t.Errorf("a state folder that does not exist: %v", err)
	}
	stop := errors.New("stop")
	if err := Walk(state, func(Found) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped with %v", err)
	}
}
