package action

import (
	"encoding/json"
	"flag"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/action/itemtest"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/git"
	"github.com/rye-mcp/rye-mcp/tools/builtin/keys"
	"github.com/rye-mcp/rye-mcp/tools/builtin/mcp"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/builtin/rag"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/builtin/system"
	"github.com/rye-mcp/rye-mcp/tools/builtin/testrun"
	"github.com/rye-mcp/rye-mcp/tools/builtin/web"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var update = flag.Bool("update", false, "rewrite the items of built-in tools in the system space")

func builtinDefinitions(t *testing.T) []tool.Definition {
	t.Helper()
	definitions, err := olderForms()
	if err != nil {
		t.Fatal(err)
	}
	for _, builtin := range slices.Concat(
		file.Tools(file.Deps{}), git.Tools(git.Deps{}), web.Tools(web.Deps{}), mcp.Tools(mcp.Source{}), rag.Tools(rag.Deps{}), system.Tools(system.Deps{}),
		memory.Tools(memory.Deps{}),
		[]tool.Tool{shell.New(nil), testrun.New(testrun.Deps{}), keys.New(keys.Deps{})},
	) {
		definitions = append(definitions, builtin.Definition())
	}
	return definitions
}

// The items are what models search and read, the Go definitions what runs.
func TestItemsMatchDefinitions(t *testing.T) {
	t.Parallel()
	for _, d := range builtinDefinitions(t) {
		t.Run(d.ID, func(t *testing.T) {
			t.Parallel()
			itemtest.Check(t, d, *update)
		})
	}
}

// Every schema a model is given compiles and fits what clients take.
func TestDefinitionsAreUsable(t *testing.T) {
	t.Parallel()
	definitions := builtinDefinitions(t)
	for _, primary := range New(Deps{}).Tools(Caller{}) {
		definitions = append(definitions, primary.Definition())
	}
	for _, d := range definitions {
		err := tool.Validate(d.Schema, json.RawMessage(`{"no such property": 1}`))
		open := d.ID == DirectiveReturnID
		if f := tool.AsFault(err); !open && (f == nil || f.Code != tool.CodeBadArguments) {
			t.Errorf("%s: an unknown property gives %v", d.ID, err)
		}
		if d.Description == "" || len(d.Description) > 2000 {
			t.Errorf("%s: a description of %d bytes", d.ID, len(d.Description))
		}
	}
}
