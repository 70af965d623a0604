package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestOutFile holds that what a command makes takes the place of nothing that the person has
// not agreed to.
func TestOutFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		has     string // "" is no file, "/" a folder
		out     outFile
		want    string // content afterwards
		refused string
	}{
		{"new", "", outFile{}, "made", ""},
		{"the same", "made", outFile{}, "made", ""},
		{"other", "mine", outFile{}, "mine", "there already"},
		{"other, overwritten", "mine", outFile{overwrite: true}, "made", ""},
		{"an older one", "x <made y", outFile{renews: "<made"}, "made", ""},
		{"another kind", "mine", outFile{renews: "<made"}, "mine", "something else"},
		{"a folder", "/", outFile{overwrite: true}, "", "is not a file"},
	} {
		dir := t.TempDir()
		tt.out.name, tt.out.perm, tt.out.example = filepath.Join(dir, "new", "folder", "f"), 0o600, "NAME"
		if tt.has != "" {
			noError(t, os.MkdirAll(filepath.Dir(tt.out.name), 0o700))
			if tt.has == "/" {
				noError(t, os.Mkdir(tt.out.name, 0o700))
			} else {
				noError(t, os.WriteFile(tt.out.name, []byte(tt.has), 0o600))
			}
		}
		err := tt.out.write([]byte("made"))
		usage, refused := errors.AsType[*usageError](err)
		if refused != (tt.refused != "") || refused && (!strings.Contains(usage.message, tt.refused) || usage.try == "") || !refused && err != nil {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
		}
		if got, _ := os.ReadFile(tt.out.name); string(got) != tt.want {
			t.Errorf("%s: the file has %q, want %q", tt.name, got, tt.want)
		}
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOutFileFails holds that what cannot be written is told of the file that was named.
func TestOutFileFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	name := filepath.Join(dir, "file", "below")
	f := tool.AsFault(outFile{name: name, perm: 0o600}.write([]byte("made")))
	if f == nil || f.Message != "write "+name+": not a directory" || f.Try == "" {
		t.Errorf("got %+v", f)
	}
}
