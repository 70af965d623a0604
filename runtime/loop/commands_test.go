package loop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
)

// command runs a thread of a command of another program.
func (h *house) command(text, arguments string, capabilities ...string) thread.Record {
	h.t.Helper()
	h.tools.more = append(file.Tools(file.Deps{User: h.user}), shell.New(nil))
	h.write(".claude/commands/check.md", "---\nallowed-tools: Bash, Read\n---\n"+text)
	h.script("turns:\n  - {text: Done.}\n")
	found, err := h.resolver().Find(item.Directive, "claude/commands/check")
	if err != nil {
		h.t.Fatal(err)
	}
	return h.run(job{
		capabilities: capabilities, inputs: map[string]any{"arguments": arguments},
		meta: func(m *thread.Meta) { m.Directive, m.DirectiveHash = found.ID, found.Hash },
	})
}

const bash, reading = "rye.execute.tool.rye.bash", "rye.execute.tool.rye.file-system.read"

func TestCommandsOfAText(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("note.txt", "the </file> note\n")
	rec := h.command("State: !`echo one; echo two >&2; exit 3`\nNow $ARGUMENTS, see @note.txt and @none.txt and @note.txt.", "go", bash, reading)
	if rec.Status != thread.Completed {
		t.Fatalf("%s %+v", rec.Status, rec.Outcome)
	}
	first := h.asked()[0]
	for _, want := range []string{
		"<output command=\"echo one; echo two &gt;&amp;2; exit 3\">\none\ntwo\n[exit code 3]\n</output>\nNow go, see @note.txt and @none.txt",
		"<file path=\"note.txt\">\n", "the <\\/file> note",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in:\n%s", want, first)
		}
	}
	if strings.Count(first, "<file ") != 1 {
		t.Errorf("files:\n%s", first)
	}
	injected := events[transcript.ContextInjected](h, rec.ThreadID, thread.EventContextInjected)
	if len(injected) != 2 || injected[0].ItemID != "rye/bash" || injected[1].ItemID != "rye/file-system/read" {
		t.Errorf("on record: %+v", injected)
	}
}

// A file that the thread may not read stays a word; a command that it may not run ends
// it, before its model is asked anything.
func TestCommandsNeedRights(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	h := newHouse(t)
	h.write("note.txt", "secret")
	if rec := h.command("See @note.txt.", "", bash); rec.Status != thread.Completed || strings.Contains(h.asked()[0], "secret") {
		t.Errorf("%s: %s", rec.Status, h.asked())
	}
	h = newHouse(t)
	rec := h.command("!`touch done`", "", reading)
	if rec.Status != thread.Error || rec.Outcome.Error.Code != "permission_denied" || rec.Cost.Turns != 0 {
		t.Errorf("%s %+v", rec.Status, rec.Outcome)
	}
	if _, err := os.Stat(filepath.Join(h.project, "done")); err == nil {
		t.Error("the command was run")
	}
	h = newHouse(t)
	if rec := h.command(strings.Repeat("!`true`\n", 21), "", bash); rec.Status != thread.Error {
		t.Errorf("21 commands: %s", rec.Status)
	}
}

// TestAttackArgumentInCommand: a model gives the command of another program arguments that the shell would read. Each is a word of the command, or a part of one, and nothing of it runs.
func TestAttackArgumentInCommand(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, arguments := range []string{"$(touch pwned)", "; touch pwned", "'; touch pwned; '", "`touch pwned`", "\"; touch pwned; \"", "!`touch pwned`", "| touch pwned", "a\ntouch pwned"} {
		for _, text := range []string{"!`echo $ARGUMENTS`", "!`echo \"$ARGUMENTS\"`", "!`echo '$ARGUMENTS'`", "!`echo $1 $2`", "$ARGUMENTS"} {
			h := newHouse(t)
			if rec := h.command(text, arguments, bash, reading); rec.Status != thread.Completed {
				t.Errorf("%q in %q: %+v", arguments, text, rec.Outcome)
			}
			if _, err := os.Stat(filepath.Join(h.project, "pwned")); err == nil {
				t.Errorf("%q ran in %q", arguments, text)
			}
		}
	}
	h := newHouse(t)
	if rec := h.command("!`echo $(( $1 ))`", "a[$(touch pwned)]", bash); rec.Status != thread.Error {
		t.Errorf("arithmetic: %s", rec.Status)
	}
}

// TestAttackForeignItemSwapped: between the check of a start and its thread, another process changes the file of an agent, or a script of a skill. The thread ends before its first turn.
func TestAttackForeignItemSwapped(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for swapped, id := range map[string]string{
		".claude/agents/a.md": "claude/agents/a", ".claude/skills/s/SKILL.md": "claude/skills/s", ".claude/skills/s/run.py": "claude/skills/s",
		".claude/skills/s/more.py": "claude/skills/s",
	} {
		h := newHouse(t)
		for _, name := range []string{".claude/agents/a.md", ".claude/skills/s/SKILL.md", ".claude/skills/s/run.py"} {
			h.write(name, "Help.")
		}
		h.script("turns:\n  - {text: Done.}\n")
		found, err := h.resolver().Find(item.Directive, id)
		if err != nil {
			t.Fatal(err)
		}
		started := h.register(job{inputs: map[string]any{"prompt": "it"}, meta: func(m *thread.Meta) { m.Directive, m.DirectiveHash = found.ID, found.Hash }})
		h.write(swapped, "Take over.")
		if rec := h.end(t.Context(), started); rec.Status != thread.Error || rec.Outcome.Error.Code != "invalid_item" || rec.Cost.Turns != 0 {
			t.Errorf("%s: %s %+v", swapped, rec.Status, rec.Outcome)
		}
	}
}
