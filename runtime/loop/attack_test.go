package loop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestAttackInputInHookCommand: an input that closes a quote, or names a command, is put into the shell command of a hook. The command gets it as a word, and the shell runs nothing of it.
func TestAttackInputInHookCommand(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(toText)
	h.tools.more = []tool.Tool{shell.New(nil)}
	h.write(".ai/tools/rye/bash.yaml", "version: 1.0.0\ntool_type: builtin\nexecutor_id: rye/core/builtin\ncategory: rye\ndescription: x\n"+
		"parameters: {type: object, properties: {command: {type: string}}, additionalProperties: false}\n")
	h.hooks(
		inHooks("plain", "thread_started", "", `primary: execute, item_type: tool, item_id: rye/bash, params: {command: "printf %s ${inputs.who} >plain"}`),
		inHooks("quoted", "thread_started", "", `primary: execute, item_type: tool, item_id: rye/bash, params: {command: "printf %s \"for ${inputs.who}\" >quoted; printf %s '${inputs.who}' >single"}`),
		inHooks("whole", "thread_started", "", `primary: execute, item_type: tool, item_id: rye/bash, params: {command: "${inputs.line}"}`),
		inHooks("never", "thread_started", "", "primary: execute, item_type: tool, item_id: rye/bash, params: {command: 'echo `echo ${inputs.who}` >never'}"))
	const who = "x'; >hit; \"$(>hit)`>hit`\"\n>hit #"
	rec := h.run(job{capabilities: []string{"rye.execute.*"}, inputs: map[string]any{"who": who, "line": "echo whole >whole"}})
	if rec.Status != thread.Completed {
		t.Fatalf("%+v", rec.Outcome)
	}
	for name, want := range map[string]string{"plain": who, "quoted": "for " + who, "single": who, "whole": "whole\n"} {
		if got, err := os.ReadFile(filepath.Join(h.project, name)); err != nil || string(got) != want {
			_, by := h.fired(rec.ThreadID)
			t.Errorf("%s: %q, %v, %+v", name, got, err, by[name])
		}
	}
	for _, name := range []string{"hit", "never"} {
		if _, err := os.Stat(filepath.Join(h.project, name)); err == nil {
			t.Errorf("%s was run", name)
		}
	}
	if _, by := h.fired(rec.ThreadID); by["never"].Error == "" {
		t.Errorf("the record of the hook: %+v", by["never"])
	}
}
