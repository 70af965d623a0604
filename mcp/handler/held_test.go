package handler

import (
	"context"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// manyProjects are projects of which calls must name one; a thread is in the one.
type manyProjects struct {
	holds   thread.ID
	project *Project
}

func (manyProjects) Several() bool { return true }

func (m manyProjects) Holding(_ context.Context, ids []thread.ID, _ func(string) bool) (*Project, error) {
	if len(ids) == 1 && ids[0] == m.holds {
		return m.project, nil
	}
	return nil, nil //nolint:nilnil // another leads nowhere
}

func (manyProjects) Project(context.Context, string) (*Project, error) {
	return nil, tool.Faultf(tool.CodeNoProject, "no project here")
}

// A call that names a thread and no project works in the project that has the thread.
func TestProjectByThread(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{Version: "test", MapError: action.Fault})
	Register(s, manyProjects{"held-1", newFolder(t, nil)}, Groups(), operation.All())
	c := servertest.Start(t, s)
	type args = map[string]any
	for _, call := range []struct {
		tool string
		args args
		want string
	}{
		{"get_status", args{"thread_id": "held-1"}, `"code":"not_found"`}, // the project was asked
		{"cancel_thread", args{"thread_ids": []string{"held-1"}}, `"code":"not_found"`},
		{"get_status", args{"id": "held-1"}, `"code":"not_found"`}, // under another name of the argument
		{"cancel_thread", args{"ids": "held-1"}, `"code":"not_found"`},
		{"rye_execute", operate("get_status", args{"thread_id": "held-1"}), `"code":"not_found"`},
		{"rye_execute", operate("cancel_thread", args{"ids": "held-1"}), `"code":"not_found"`},
		{"rye_execute", args{"resume_thread_id": "held-1", "parameters": args{"message": "go on"}}, `"code":"not_found"`},
		{"rye_execute", operate("get_status", args{"thread_id": "other-1"}), `"code":"no_project"`},
		{"rye_execute", operate("list_threads", nil), `"code":"no_project"`},
		{"rye_execute", operate("no_such", args{"thread_id": "held-1"}), `"code":"no_project"`},
		{"get_status", args{"thread_id": "other-1"}, `"code":"no_project"`},
		{"list_threads", args{}, `"code":"no_project"`}, // several are open
		{"map_threads", args{"directive": "greet", "items": []any{map[string]any{}}}, `"code":"no_project"`},
		{"get_status", args{"thread_id": "held-1", "project_path": "/there"}, `"code":"no_project"`}, // it is taken as it is
	} {
		if r := c.Call(call.tool, call.args); !strings.Contains(string(r.JSON), call.want) {
			t.Errorf("%s %v: %s, want %s", call.tool, call.args, r.JSON, call.want)
		}
	}
}
