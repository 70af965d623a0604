package control

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// An agent of another program that names no model has its parent's, and one that names
// no tools has those to read with, whatever its parent may do.
func TestForeignBelowParent(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/top.md", strings.Replace(strings.ReplaceAll(directive, "%s", ""), `name=""`, `name="top"`, 1))
	s.write("directives/top.md", strings.Replace(s.read(s.project+"/.ai/directives/top.md"), "</execute>", startsAny+"</execute>", 1))
	s.write("../.claude/agents/plain.md", "---\nname: plain\n---\nYou help.")
	s.write("../.claude/agents/high.md", "---\nmodel: opus\ntools: Write, Bash\n---\nYou help.")
	s.write("../.claude/commands/narrow.md", "---\nallowed-tools: Bash(git add:*)\n---\nAdd.")
	top := s.start("top", "")
	task := map[string]any{"prompt": "It."}
	for id, want := range map[string]struct {
		sameModel    bool
		capabilities string
	}{
		"claude/agents/plain": {true, "read glob grep ls"},
		"claude/agents/high":  {false, "write"}, // its parent has no shell
	} {
		started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: id, Parent: top, Inputs: task})
		s.noError(err)
		child := s.meta(started.ThreadID)
		if same := child.Model == s.meta(top).Model; same != want.sameModel {
			t.Errorf("%s: model %s below %s", id, child.Model, s.meta(top).Model)
		}
		if got := strings.ReplaceAll(strings.Join(child.Capabilities, " "), "rye.execute.tool.rye.file-system.", ""); got != want.capabilities {
			t.Errorf("%s: it may %s", id, got)
		}
		s.order(started.ThreadID, "claim")
		s.order(started.ThreadID, "complete")
	}
	_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "claude/commands/narrow"})
	if f, ok := err.(*tool.Fault); !ok || !strings.Contains(f.Message, "asks for a part of Bash") { //nolint:errorlint // as it is given
		t.Errorf("a part of a tool: %v", err)
	}
}
