package shell

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestWorkspace: a command of a thread with a workspace runs there, and is known as one of
// the project.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	env := project(t)
	tree := project(t).Project
	if err := os.Mkdir(filepath.Join(tree, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	env.ThreadID, env.Work = "d-1", &tool.Work{Root: tree, Tree: tree}
	if got := bash(t, env, `pwd; echo "$RYE_PARENT_PROJECT"`).Stdout; got != tree+"\n"+env.Project+"\n" {
		t.Errorf("%s", got)
	}
	out, fault := call(t.Context(), t, env, map[string]any{"command": "pwd", "working_dir": filepath.Join(env.Project, "sub")})
	if fault != nil || out.Stdout != filepath.Join(tree, "sub")+"\n" {
		t.Errorf("%+v, %v", out, fault)
	}
}
