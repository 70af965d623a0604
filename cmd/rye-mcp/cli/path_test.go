package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/notify"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// TestAttackProgramsInPath: a command of a thread puts programs that this one runs for itself into a folder of the project that is in PATH: the one that gives a key, the one that is told of threads, and those that a doctor asks for their version.
// Those outside of the project are run, or none, and what they run themselves is not the project's either.
func TestAttackProgramsInPath(t *testing.T) {
	t.Parallel()
	project, home := makeDir(t, realTemp(t), "project"), realTemp(t)
	theirs, ours := makeDir(t, project, ".venv", "bin"), makeDir(t, home, "bin")
	ran := filepath.Join(home, "ran")
	for _, name := range []string{"give-key", "tell", "helper", "git", "only-there"} {
		writeProgram(t, filepath.Join(theirs, name), "touch "+ran+"; echo theirs")
	}
	writeProgram(t, filepath.Join(ours, "give-key"), "helper 2>/dev/null; echo ours")
	writeProgram(t, filepath.Join(ours, "tell"), "helper 2>/dev/null; echo told >"+filepath.Join(home, "told"))
	writeProgram(t, filepath.Join(ours, "git"), "echo git version 2")
	sys := testSystem(project, nil)
	sys.Environ = []string{"HOME=" + home, "PATH=" + strings.Join([]string{theirs, ours, "/usr/bin", "/bin"}, ":")}

	key, err := providerSource(sys, project).Key(t.Context(), config.Provider{Name: "x", APIKeyCommand: []string{"give-key"}})
	if err != nil || key != "ours" {
		t.Errorf("the key %q, %v", key, err)
	}
	if key, err := providerSource(sys, project).Key(t.Context(), config.Provider{Name: "x", APIKeyCommand: []string{"only-there"}}); err == nil {
		t.Errorf("the key %q", key)
	}
	ways := notify.Ways(config.Notify{Command: []string{"tell"}}, sys.Environ, home, project)
	if err := ways[0].Send(t.Context(), notify.Message{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(home, "told")); err != nil {
		t.Error(err)
	}
	d := &doctor{sys: sys, project: project}
	if got := d.programVersion(t.Context(), "git"); got != "git version 2" {
		t.Errorf("the version %q", got)
	}
	if got := d.programVersion(t.Context(), "only-there"); !strings.Contains(got, "lies in the project") {
		t.Errorf("the version %q", got)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the project has run")
	}
}

func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
