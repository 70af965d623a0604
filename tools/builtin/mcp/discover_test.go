package mcp

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// offers, in its environment, makes the test binary a server with tools of these names,
// each with the description after the equals sign.
const offers = "MCP_TEST_OFFERS"

func TestMain(m *testing.M) {
	offered := os.Getenv(offers)
	if offered == "" {
		os.Exit(m.Run())
	}
	s := server.NewMCPServer("other", "1", server.WithToolCapabilities(false))
	for named := range strings.SplitSeq(offered, ",") {
		name, description, _ := strings.Cut(named, "=")
		s.AddTool(mcp.NewTool(name, mcp.WithDescription(description), mcp.WithString("q")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("called"), nil
		})
	}
	_ = server.ServeStdio(s)
}

type discovery struct {
	*testing.T

	project string
	source  Source
}

func newDiscovery(t *testing.T) *discovery {
	t.Helper()
	d := &discovery{T: t, project: t.TempDir()}
	d.write("mcp/servers/other.yaml", "tool_type: mcp_server\nconfig: {command: x}\n")
	d.source = Source{
		Resolver: resolve.New(resolve.Roots{Project: d.project, System: fstest.MapFS{}}), Connections: mcpclient.New("test"), Now: time.Now,
	}
	t.Cleanup(d.source.Connections.Close)
	return d
}

func (d *discovery) write(name, content string) {
	d.Helper()
	path := filepath.Join(d.project, ".ai", "tools", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.Fatal(err)
	}
}

// discover asks a server that offers these tools.
func (d *discovery) discover(offered string) map[string]State {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	d.source.Server = func(_ context.Context, found *resolve.Found) (mcpclient.Server, error) {
		return mcpclient.Server{ID: found.ID, Transport: mcpclient.Stdio, Command: self, Env: []string{offers + "=" + offered}}, nil
	}
	got, err := d.source.Discover(d.Context(), "mcp/servers/other", "")
	if err != nil {
		d.Fatal(err)
	}
	states := make(map[string]State)
	for _, t := range got.Tools {
		states[t.ItemID] = t.State
	}
	return states
}

func (d *discovery) same(got, want map[string]State) {
	d.Helper()
	for id, state := range want {
		if got[id] != state {
			d.Errorf("%s: %s, want %s", id, got[id], state)
		}
	}
	if len(got) != len(want) {
		d.Errorf("%v, want %v", got, want)
	}
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t)
	d.write("mcp/other/mine.yaml", "executor_id: rye/core/runtimes/bash/bash\n")
	d.same(d.discover("a=one,b=two,mine=x"), map[string]State{"mcp/other/a": New, "mcp/other/b": New, "mcp/other/mine": Kept})
	// A signature, and comments, are no change.
	path := filepath.Join(d.project, ".ai/tools/mcp/other/a.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d.write("mcp/other/a.yaml", "# rye:signed:x\n"+string(content))
	d.same(d.discover("a=one,b=other,mine=x"), map[string]State{"mcp/other/a": Same, "mcp/other/b": Changed, "mcp/other/mine": Kept})
	d.same(d.discover("b=other"), map[string]State{"mcp/other/a": Gone, "mcp/other/b": Same})
	found, err := d.source.Resolver.Find(item.Tool, "mcp/other/b")
	if err != nil || !strings.Contains(string(found.Content), "«other»") {
		t.Errorf("%s, %v", found.Content, err)
	}
	if kept, err := filepath.Glob(filepath.Join(d.project, ".ai/tools/mcp/other/b.yaml.replaced-*")); err != nil || len(kept) != 1 {
		t.Errorf("%v, %v", kept, err)
	}
}

func TestDiscoverRefuses(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t)
	d.source.Server = func(_ context.Context, found *resolve.Found) (mcpclient.Server, error) {
		return mcpclient.Server{ID: found.ID, Transport: mcpclient.Stdio, Command: "/nowhere"}, nil
	}
	for _, test := range []struct {
		id   string
		into item.Space
		want string
	}{
		{"mcp/servers/none", "", "mcp/servers/none"},
		{"mcp/servers/other", item.User, "do not depend on projects"},
		{"mcp/servers/other", item.System, "into the project or the user space"},
		{"mcp/servers/other", "", "/nowhere"},
	} {
		if _, err := d.source.Discover(t.Context(), test.id, test.into); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.id, err)
		}
	}
	_, err := d.source.Connect(t.Context(), "mcp/servers/other")
	if f := tool.AsFault(err); f == nil || f.Code != tool.CodeToolFailed {
		t.Error(err)
	}
}

func TestConnect(t *testing.T) {
	t.Parallel()
	d := newDiscovery(t)
	d.discover("a=one\nline")
	got, err := d.source.Connect(t.Context(), "mcp/servers/other")
	if err != nil || len(got.Tools) != 1 || got.Tools[0].Description != "one line" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, tool := range Tools(d.source) {
		if !strings.HasPrefix(tool.Definition().ID, "rye/mcp/") {
			t.Error(tool.Definition().ID)
		}
	}
}
