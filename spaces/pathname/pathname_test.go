package pathname_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
)

// TestHolds has paths that a folder holds by name, and paths that it holds for the file
// system alone.
func TestHolds(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home := filepath.Join(base, "home")
	for _, dir := range []string{"home/project/bin", "home/projects", "opt/bin"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"home/alias":       "project",
		"home/tools":       filepath.Join(home, "project", "bin"),
		"home/project/out": filepath.Join(base, "opt"),
	} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	project := filepath.Join(home, "project")
	tests := []struct {
		path       string
		has, holds bool
	}{
		{project, true, true},
		{project + "/bin", true, true},
		{project + "/bin/../bin/none", true, true},
		{project + "/none/below", true, true},
		{project + "/..name", true, true},
		{project + "/out/bin", true, true}, // whoever writes to the project can lead it elsewhere
		{project + "/../project/bin", true, true},
		{home + "/alias/bin", false, true},
		{home + "/alias/none/below", false, true},
		{home + "/tools", false, true},
		{home + "/tools/run", false, true},
		{home + "/projects", false, false},
		{home, false, false},
		{base + "/opt/bin", false, false},
		{"/", false, false},
		{"", false, false},
	}
	for _, tt := range tests {
		if got := pathname.Has(project, tt.path); got != tt.has {
			t.Errorf("Has(%q) = %v", tt.path, got)
		}
		if got := pathname.Holds(project, tt.path); got != tt.holds {
			t.Errorf("Holds(%q) = %v", tt.path, got)
		}
		if got := pathname.Holds(filepath.Join(home, "alias"), tt.path); got != tt.holds {
			t.Errorf("Holds(%q) = %v for another name of the folder", tt.path, got)
		}
	}
	if pathname.Holds(filepath.Join(home, "none"), home) || pathname.Holds("", home) {
		t.Error("a folder that is not there holds what is")
	}
}

func TestInside(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dir, path, rel string
		is             bool
	}{
		{"/a", "/a", ".", true},
		{"/a", "/a/b/../c", "c", true},
		{"/a", "/a/..b", "..b", true},
		{"/a", "/ab", "", false},
		{"/a", "/", "", false},
		{"/a", "a", "", false},
		{"/", "/a", "a", true},
	}
	for _, tt := range tests {
		if rel, is := pathname.Inside(tt.dir, tt.path); rel != tt.rel || is != tt.is {
			t.Errorf("Inside(%q, %q) = %q, %v", tt.dir, tt.path, rel, is)
		}
	}
}
