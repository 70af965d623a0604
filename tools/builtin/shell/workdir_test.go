package shell

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestWorkingDir(t *testing.T) {
	t.Parallel()
	base := project(t).Project
	root := filepath.Join(base, "project")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	check(os.MkdirAll(filepath.Join(base, "project-2"), 0o755))
	check(os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	check(os.Symlink("a/b", filepath.Join(root, "inside")))
	check(os.Symlink("../project-2", filepath.Join(root, "escape")))
	check(os.Symlink("/", filepath.Join(root, "a", "top")))
	alias := filepath.Join(base, "alias")
	check(os.Symlink(root, alias))

	tests := []struct {
		dir  string
		want string // below the project
		code tool.Code
	}{
		{dir: "", want: "."},
		{dir: ".", want: "."},
		{dir: "a/b", want: "a/b"},
		{dir: "a/../a/b/.", want: "a/b"},
		{dir: "inside", want: "a/b"},
		{dir: root, want: "."},
		{dir: root + "/a", want: "a"},
		{dir: alias + "/a", want: "a"},
		{dir: "..", code: tool.CodeOutsideProject},
		{dir: "../project-2", code: tool.CodeOutsideProject},
		{dir: root + "-2", code: tool.CodeOutsideProject},
		{dir: root + "/../project-2", code: tool.CodeOutsideProject},
		{dir: "escape", code: tool.CodeOutsideProject},
		{dir: "a/top/tmp", code: tool.CodeOutsideProject},
		{dir: "/", code: tool.CodeOutsideProject},
		{dir: "../missing", code: tool.CodeOutsideProject}, // whether it exists is not told
		{dir: "missing", code: tool.CodeBadArguments},
		{dir: "file", code: tool.CodeBadArguments},
		{dir: "a\x00b", code: tool.CodeBadArguments},
	}
	for _, tt := range tests {
		got, err := workingDir(alias, tt.dir) // the project itself may be reached by a link
		var fault *tool.Fault
		switch {
		case tt.code == "" && (err != nil || got != filepath.Join(root, tt.want)):
			t.Errorf("%q: %q, %v", tt.dir, got, err)
		case tt.code != "" && (!errors.As(err, &fault) || fault.Code != tt.code):
			t.Errorf("%q: %q, %v, want %s", tt.dir, got, err, tt.code)
		}
	}
	if _, err := workingDir(filepath.Join(base, "missing"), "."); err == nil {
		t.Error("a missing project")
	}
}
