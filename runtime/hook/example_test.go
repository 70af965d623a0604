package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// The examples that teach what hooks look like must be hooks.
func TestExamples(t *testing.T) {
	t.Parallel()
	found, err := resolve.New(resolve.Roots{System: system.FS()}).Find(item.Knowledge, "rye/core/hooks")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(found.Content), "# Writing hooks")
	example := func(language string) string {
		_, rest, _ := strings.Cut(text, "```"+language+"\n")
		block, _, closed := strings.Cut(rest, "```\n")
		if !closed {
			t.Fatalf("there is no example in %s", language)
		}
		return block
	}
	project := t.TempDir()
	write := func(name, content string) {
		file := filepath.Join(project, ".ai", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config/agent/hooks.yaml", example("yaml"))
	write("directives/hooked.md", "```xml\n<directive name=\"hooked\"><metadata>\n"+example("xml")+"</metadata></directive>\n```\nDo it.\n")
	roots := resolve.Roots{Project: project, User: t.TempDir(), System: system.FS()}
	trusttest.AcceptSettings(t, roots)
	doc, err := directiveOf(roots, "hooked")
	if err != nil {
		t.Fatal(err)
	}
	set, warnings, err := hook.Load(config.New(roots).Read(), nil)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	set, err = set.WithDirectives(hook.DirectiveHooks{Directive: "hooked", Path: "hooked.md", Hooks: doc.Hooks})
	if err != nil {
		t.Fatal(err)
	}
	if all := set.All(); len(all) != 4 {
		t.Errorf("the examples have %d hooks", len(all))
	}
}

func directiveOf(roots resolve.Roots, id string) (*item.DirectiveDoc, error) {
	found, err := resolve.New(roots).Find(item.Directive, id)
	if err != nil {
		return nil, err
	}
	return found.Directive()
}
