package file

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestWorkspace: the tools of a thread with a workspace work there, also by paths of the
// project, and reach neither the project nor another workspace.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("a.txt", "of the project\n")
	all := filepath.Join(b.user, ".ai", protect.Workspaces)
	tree := filepath.Join(all, "p", "one", "tree")
	for name, text := range map[string]string{
		tree + "/a.txt": "of the workspace\n", tree + "/.ai/config/x.yaml": "x: 1\n", all + "/p/other/tree/a.txt": "of another\n",
		tree + "/.git": "gitdir: elsewhere\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	env := tool.Env{Project: b.dir, Work: &tool.Work{Root: tree, Tree: tree}}
	call := func(name, path string) (string, error) {
		found, _ := b.tools.Get("rye/file-system/" + name)
		args, err := json.Marshal(map[string]any{"path": path, "content": "new\n"})
		if err != nil {
			t.Fatal(err)
		}
		if name == "read" {
			args = []byte(`{"path":` + string(must(json.Marshal(path))) + `}`)
		}
		out, err := found.Call(t.Context(), env, args)
		return string(must(json.Marshal(out))), err
	}
	for _, path := range []string{"a.txt", filepath.Join(b.dir, "a.txt"), filepath.Join(tree, "a.txt")} {
		if out, err := call("read", path); err != nil || !strings.Contains(out, "of the workspace") {
			t.Errorf("%s: %s, %v", path, out, err)
		}
	}
	if _, err := call("write", "new.txt"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "new.txt")); err == nil {
		t.Error("a file was written in the project")
	}
	for path, code := range map[string]tool.Code{
		filepath.Join(all, "p/other/tree/a.txt"): tool.CodeOutsideProject, "../git/config": tool.CodeOutsideProject, ".git": tool.CodeProtected, ".ai/config/x.yaml": tool.CodeProtected,
	} {
		_, err := call("write", path)
		if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != code {
			t.Errorf("write %s: %v, want %s", path, err, code)
		}
	}
	env.Work = nil // a project that holds the user's .ai reaches no workspace
	env.Project = b.user
	_, err := call("read", strings.TrimPrefix(tree, b.user+"/")+"/a.txt")
	if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != tool.CodeProtected {
		t.Errorf("a workspace from the home: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
