package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

// Clients are told of project_path where a call may have to name its project, and of the
// schemas of answers where the person wants it.
func TestWhatToolsTell(t *testing.T) {
	t.Parallel()
	base := realDir(t)
	empty, working, other := makeDir(t, base, "empty"), makeDir(t, base, "working"), makeDir(t, base, "other")
	makeDir(t, working, ".ai")
	for _, tt := range []struct {
		name, wd, project string
		serve             serveOptions
		path, output      bool
	}{
		{name: "in a project", wd: working},
		{name: "anywhere", wd: empty, path: true},
		{name: "--project", wd: empty, project: other},
		{name: "--project in a folder of projects", wd: empty, project: other, serve: serveOptions{allowed: []string{base}}, path: true},
		{name: "--project, which alone is allowed", wd: empty, project: other, serve: serveOptions{allowed: []string{other}}},
		{name: "a folder of projects", wd: working, serve: serveOptions{allowed: []string{base}}, path: true},
		{name: "--output-schemas", wd: working, serve: serveOptions{outputSchemas: true}, output: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sys := testSystem(tt.wd, map[string]string{"USER_SPACE": base})
			sys.Stderr = zerolog.ConsoleWriter{Out: &bytes.Buffer{}}
			s, err := newMCPServer(sys, options{project: tt.project}, tt.serve, oneClient)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.close)
			for _, tool := range servertest.Start(t, s.Server).Tools() {
				starts := strings.HasPrefix(tool.Name, "rye_") || tool.Name == "map_threads" // the others find it by their threads
				if got, want := bytes.Contains(tool.InputSchema, []byte(`"project_path"`)), tt.path && starts; got != want {
					t.Errorf("%s tells of project_path: %v, want %v", tool.Name, got, want)
				}
				if got := tool.OutputSchema != nil; got != tt.output {
					t.Errorf("%s tells of its answers: %v, want %v", tool.Name, got, tt.output)
				}
			}
		})
	}
}
