package mcp

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/foreign"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

func TestServerItem(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		server foreign.Server
		want   string // in the item
		wrong  string
	}{
		{foreign.Server{Name: "files", Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"A": "${B}"}}, "transport: stdio\n  command: npx\n  args:\n    - -y\n    - x\n  env:\n    A: ${B}\n", ""},
		{foreign.Server{Name: "api", URL: "${BASE:-https://h}/mcp", Headers: map[string]string{"Authorization": "Bearer ${T}"}}, "transport: http\n  url: ${BASE:-https://h}/mcp\n", ""},
		{foreign.Server{Name: "old", Type: "sse", URL: "https://h/sse"}, "", "over SSE alone"},
		{foreign.Server{Name: "none"}, "", "names no command"},
		{foreign.Server{Name: "odd", URL: "ftp://h"}, "", "not one of http"},
	} {
		content, err := ServerItem(test.server)
		if test.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: %v", test.server.Name, err)
			}
			continue
		}
		if err != nil || !strings.Contains(string(content), test.want) {
			t.Errorf("%s: %v\n%s", test.server.Name, err, content)
		}
		if doc, err := parse.Tool("x.yaml", content); err != nil || doc.ToolType != "mcp_server" || doc.Metadata["network"] != true {
			t.Errorf("%+v, %v", doc, err)
		}
	}
}

func TestServerID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"github": "mcp/servers/github", "My Server": "mcp/servers/My-Server", "../../x": "mcp/servers/x", "": "", "…": "", strings.Repeat("a", 65): "",
	} {
		got, err := ServerID(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}
