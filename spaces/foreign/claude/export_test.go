package claude

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestExport(t *testing.T) {
	t.Parallel()
	doc := &item.DirectiveDoc{Description: "Reviews: \"all\"\nof it", Inputs: []item.Input{
		{Name: "path", Type: "string", Required: true, Description: "what\nto read"}, {Name: "depth", Type: "string", Enum: []string{"a", "b"}},
	}}
	content, err := Export{ID: "team/review", Name: "team-review", Server: "rye", Doc: doc}.File()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"name: rye-team-review\n", `description: "Reviews: \"all\" of it (`, "tools: mcp__rye__rye_execute, mcp__rye__wait_threads\n",
		`"item_id": "team/review"`, "- path (string, required): what to read\n", "- depth (string, optional), one of a, b\n",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%q is not in:\n%s", want, content)
		}
	}
	// It is an agent that this package reads, whose tools are ours and mean nothing here.
	as := read1(t, "claude/agents/x", string(content))
	if as.Title != "rye-team-review" || len(as.Permissions.Capabilities) > 0 || len(stops(as)) > 0 {
		t.Errorf("%+v", as)
	}
	if id, whole := ExportOf(content); id != "team/review" || !whole {
		t.Errorf("%q, %v", id, whole)
	}
	for name, changed := range map[string][]byte{
		"its text":     bytes.Replace(content, []byte("haiku"), []byte("opus"), 1),
		"its end":      append(bytes.Clone(content), "more"...),
		"another's id": bytes.Replace(content, []byte("claude for team/review "), []byte("claude for team/other "), 1),
	} {
		if _, whole := ExportOf(changed); whole {
			t.Errorf("%s is changed, and it counts as ours", name)
		}
	}
	for _, foreign := range []string{"", reviewerAgent, markBegins, markBegins + "x" + markEnds, markBegins + "../x 12" + markEnds} {
		if id, whole := ExportOf([]byte(foreign)); id != "" || whole {
			t.Errorf("%q is ours: %q", foreign, id)
		}
	}
}

const reviewerAgent = "---\nname: x\n---\nYou review."

func TestExportNames(t *testing.T) {
	t.Parallel()
	names := ExportNames([]string{"team/review", "greet", "Greet", "a/b-c", "a-b/c", "a-b/c", "größe"})
	if names["team/review"] != "team-review" || names["a/b-c"] == names["a-b/c"] || !strings.HasPrefix(names["a/b-c"], "a-b-c-") {
		t.Errorf("%v", names)
	}
	seen := map[string]bool{}
	for id, name := range names {
		if seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%s has the name %s", id, name)
		}
		seen[name] = true
	}
	again := ExportNames([]string{"team/review", "team/review"})
	if again["team/review"] != "team-review" {
		t.Errorf("%v", again)
	}
}

// An agent that stands for a directive is no item: the directive is.
func TestExportsAreNoItems(t *testing.T) {
	t.Parallel()
	p := Places()[0]
	if id, ok := p.ID("rye/team-review.md"); ok {
		t.Error(id)
	}
	if name, ok := p.File("claude/agents/rye/team-review"); ok {
		t.Error(name)
	}
	if _, ok := p.ID("ryegrass/x.md"); !ok {
		t.Error("another folder is left out")
	}
}
