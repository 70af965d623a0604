package palette

import (
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// read_artifact is there where anything else is, under a name that no tool takes from
// it, and needs no capability.
func TestReadArtifact(t *testing.T) {
	t.Parallel()
	reader := tool.Definition{ID: "rye/agent/threads/read_artifact"}
	build := func(caps []string, ids ...string) Palette {
		return Build(Input{
			Primaries: definitions("rye_execute"), Tools: definitions(ids...), Capabilities: caps,
			Missing: allowAll, Outputs: []item.Output{{Name: "x"}}, ReadArtifact: reader,
		})
	}
	if got := show(build(nil)); got != "rye_directive_return rye_read_artifact" {
		t.Errorf("with nothing but the return: %s", got)
	}
	if got := show(build([]string{"rye.execute.directive.a"})); got != "rye_execute rye_directive_return rye_read_artifact" {
		t.Errorf("with a primary action: %s", got)
	}
	if got := show(Build(Input{ReadArtifact: reader})); got != "" {
		t.Errorf("without anything: %s", got)
	}
	p := build([]string{"rye.sign.*"}, "rye/read/artifact")
	if e, ok := p.Get(ArtifactName); !ok || e.Kind != KindArtifact || e.ID != reader.ID {
		t.Errorf("its name: %+v in %s", e, show(p))
	}
	if !slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.Kind == KindTool && e.ID == "rye/read/artifact" && e.Name != ArtifactName }) {
		t.Errorf("a tool of the same flat name: %s", show(p))
	}
	if p := Build(Input{Primaries: definitions("rye_execute"), Capabilities: []string{"*"}}); show(p) != "rye_execute" {
		t.Errorf("not given: %s", show(p))
	}
}
