package page

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/mcp/handler/handlertest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a page's projects: one, with threads that have no process.
type scene struct{ *handlertest.Scene }

func newScene(t testing.TB, files map[string]string) *scene {
	t.Helper()
	return &scene{handlertest.New(t, files)}
}

// List implements [Projects].
func (s *scene) List() []Named { return []Named{{Name: "here", Path: s.Project.Path}} }

// Open implements [Projects].
func (s *scene) Open(_ context.Context, name string) (*Project, error) {
	if name != "" && name != "here" {
		return nil, tool.Faultf(tool.CodeNoProject, "the page shows no project %q", name)
	}
	return &Project{Name: "here", Project: s.Project, Export: func(_ context.Context, id thread.ID, scope Scope) ([]byte, error) {
		return fmt.Appendf(nil, "%s %+v", id, scope), nil
	}}, nil
}
