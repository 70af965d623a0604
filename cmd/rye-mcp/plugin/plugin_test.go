package plugin_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plugin"
)

func filesOf(t *testing.T, s plugin.Server) map[string]string {
	t.Helper()
	files, err := plugin.Files(s)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[f.Path] = string(f.Data)
	}
	return all
}

func TestFiles(t *testing.T) {
	t.Parallel()
	all := filesOf(t, plugin.Server{Command: "/opt/rye-mcp", Env: map[string]string{"KEY": "${KEY:-}"}, Version: "1.2.3"})
	for path, wants := range map[string][]string{
		".claude-plugin/plugin.json": {`"name": "rye"`, `"version": "1.2.3"`},
		".mcp.json":                  {`"rye": {`, `"command": "/opt/rye-mcp"`, `"--stdio"`, `"KEY": "${KEY:-}"`},
		"monitors/monitors.json":     {`exec '/opt/rye-mcp' threads watch --mine"`, `"when": "always"`},
		"hooks/hooks.json":           {`"Stop"`, `threads watch --mine --once"`, `"asyncRewake": true`},
		"skills/delegate/SKILL.md":   {"description: ", "rye_execute", "wait_threads", "approve_thread"},
	} {
		for _, want := range wants {
			if !strings.Contains(all[path], want) {
				t.Errorf("%s lacks %q:\n%s", path, want, all[path])
			}
		}
		if strings.HasSuffix(path, ".json") && !json.Valid([]byte(all[path])) {
			t.Errorf("%s is no JSON", path)
		}
	}
	if len(all) != 5 {
		t.Errorf("the plugin has %d files", len(all))
	}
}

func TestProjectOfServerAndMonitor(t *testing.T) {
	t.Parallel()
	args := slices.Clip([]string{"--stdio"})
	all := filesOf(t, plugin.Server{Command: "/rye", Args: args, Project: "/home/me/my work"})
	if got := all[".mcp.json"]; !strings.Contains(got, "\"--project\",\n        \"/home/me/my work\"") {
		t.Errorf("server: %s", got)
	}
	if got := all["monitors/monitors.json"]; !strings.Contains(got, "--mine --project '/home/me/my work'") {
		t.Errorf("monitor: %s", got)
	}
}

func TestNoCommand(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"", "/a\nb", "/a\x00b"} {
		if files, err := plugin.Files(plugin.Server{Command: command}); err == nil {
			t.Errorf("%q made %d files", command, len(files))
		}
	}
}

// TestAttackPluginPath: the program lies in a folder whose name is a command of a shell. The monitor of the plugin names that folder and runs nothing else.
func TestAttackPluginPath(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`\$\{[^}]*\}`) // as Claude Code replaces them
	for _, path := range []string{`/a'; touch /tmp/x; '`, "/a b/$(id)", "/`id`/rye", `/${HOME}/rye`, `/"x"/\rye`, `/$'${'x}`} {
		var monitors []struct{ Command string }
		all := filesOf(t, plugin.Server{Command: path})
		if err := json.Unmarshal([]byte(all["monitors/monitors.json"]), &monitors); err != nil {
			t.Fatal(err)
		}
		line := variable.ReplaceAllString(monitors[0].Command, "GONE")
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s|' "+strings.TrimPrefix(line, "exec ")).Output()
		if want := path + "|threads|watch|--mine|"; err != nil || string(out) != want {
			t.Errorf("the shell reads %q of %q, want %q (%v)", out, line, want, err)
		}
	}
}
