package system_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/system"
)

var update = flag.Bool("update", false, "rewrite the list of hashes")

// TestHashes keeps the embedded list true.
func TestHashes(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	for _, name := range shipped(t) {
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(read(t, name)), name)
	}
	if *update {
		if err := os.WriteFile("hashes.txt", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return // the list in this program is the old one
	}
	got, err := os.ReadFile("hashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("hashes.txt does not fit the files in ai; look at what was changed, then run: go generate ./spaces/system\nit has\n%s\nit should have\n%s", got, &want)
	}
}

func TestHas(t *testing.T) {
	t.Parallel()
	names := shipped(t)
	for _, name := range names {
		if !system.Has(name, read(t, name)) {
			t.Errorf("%s is not on the list", name)
		}
	}
	name, content := names[0], read(t, names[0])
	line := fmt.Sprintf("%s\n%x  %s", name, sha256.Sum256(read(t, names[1])), names[1])
	for what, has := range map[string]bool{
		"altered content":             system.Has(name, append(bytes.Clone(content), ' ')),
		"the content at another path": system.Has(names[1], content),
		"a path cut short":            system.Has(strings.TrimSuffix(name, "l"), content),
		"two lines":                   system.Has(line, content),
		"no path":                     system.Has("", content),
	} {
		if has {
			t.Errorf("%s is taken for shipped", what)
		}
	}
}

// A stray file in the folder, such as an editor's copy, would be shipped.
func TestNothingStrayIsShipped(t *testing.T) {
	t.Parallel()
	for _, name := range shipped(t) {
		base := path.Base(name)
		if ext := path.Ext(base); strings.HasPrefix(base, ".") || ext != ".md" && ext != ".yaml" && ext != ".toml" && ext != ".py" && ext != ".mjs" {
			t.Errorf("%s is shipped; is it meant to be?", name)
		}
	}
}

func shipped(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(system.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) < 2 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := fs.ReadFile(system.FS(), name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
