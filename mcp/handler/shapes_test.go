package handler

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type members map[string]struct {
	Type string `json:"type"`
}

func membersOf[T any](t *testing.T) members {
	t.Helper()
	raw, err := tool.SchemaFor[T]()
	if err != nil {
		t.Fatal(err)
	}
	return membersIn(t, raw)
}

func membersIn(t *testing.T, raw []byte) members {
	t.Helper()
	var schema struct{ Properties members }
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	return schema.Properties
}

// rye_execute and rye_fetch send what the actions return. Their documented
// output has every member of it, with its type.
func TestDocumentedShapes(t *testing.T) {
	t.Parallel()
	execute, fetch := membersOf[executeOutput](t), membersOf[fetchOutput](t)
	documents := func(name string, documented, sent members) {
		t.Helper()
		for member, is := range sent {
			says, ok := documented[member]
			if !ok || says.Type != "" && says.Type != is.Type {
				t.Errorf("%s of %s is a %q, documented as %q (%t)", member, name, is.Type, says.Type, ok)
			}
		}
	}
	documents("InlineDirective", execute, membersOf[action.InlineDirective](t))
	documents("ToolResult", execute, membersOf[action.ToolResult](t))
	documents("KnowledgeResult", execute, membersOf[action.KnowledgeResult](t))
	documents("DryRun", execute, membersOf[action.DryRun](t))
	documents("Started", execute, membersOf[view.Started](t))
	documents("Plan", execute, membersOf[plan.Preview](t))
	documents("FetchResult", fetch, membersOf[action.FetchResult](t))
	documents("SearchResult", fetch, membersOf[action.SearchResult](t))

	// The operations that the older tool reaches have members of their own, but
	// none of another type.
	for _, e := range operation.All().Entries() {
		raw, err := e.Output()
		if err != nil {
			t.Fatal(err)
		}
		for member, is := range membersIn(t, raw) {
			if says, ok := execute[member]; ok && says.Type != "" && says.Type != is.Type {
				t.Errorf("%s of %s is a %q, documented as %q", member, e.Name, is.Type, says.Type)
			}
		}
	}
}
