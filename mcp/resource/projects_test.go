package resource_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// twoProjects are the usual project of a client, and another one that the client has been in.
type twoProjects struct{ usual, other *scene }

func (s twoProjects) Several() bool { return true }

func (s twoProjects) Project(ctx context.Context, path string) (*handler.Project, error) {
	if path == s.other.Scene.Project.Path {
		return s.other.Scene.Project, nil
	}
	return s.usual.Project(ctx, path)
}

func (s twoProjects) Holding(ctx context.Context, ids []thread.ID, visited func(string) bool) (*handler.Project, error) {
	known, err := s.other.Store.Known(ctx, ids)
	if err != nil || len(known) == 0 || !visited(s.other.Scene.Project.Path) {
		return nil, err
	}
	return s.other.Scene.Project, nil
}

// TestResourcesOfAnotherProject: the address of a thread leads to its project without naming
// it, once read and as long as the client is told of changes. The board is that of the
// usual project.
func TestResourcesOfAnotherProject(t *testing.T) {
	t.Parallel()
	projects := twoProjects{newScene(t, nil), newScene(t, nil)}
	id := projects.other.Start("there")
	told, option := newNotes(t)
	c := connect(t, projects, servertest.Over(servertest.Stateless), option)
	at := "rye://threads/" + string(id) + "/result"
	if got := read(t, c, at).Contents[0].Text; !strings.Contains(got, `"running"`) {
		t.Errorf("read %s", got)
	}
	if got := read(t, c, "rye://threads").Contents[0].Text; strings.Contains(got, string(id)) {
		t.Errorf("the board is that of the other project: %s", got)
	}
	if _, rpcErr := c.Request("resources/read", map[string]any{"uri": at + "?project_path=" + projects.usual.Scene.Project.Path}); rpcErr == nil {
		t.Error("an address that names a project leads to another")
	}
	subscribe(t, c, at)
	told.await("subscriptions/acknowledged")
	projects.other.End(id, thread.Outcome{State: thread.Completed})
	told.await("resources/updated " + at)
}
