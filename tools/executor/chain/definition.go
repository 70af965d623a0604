package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ErrNoTool says that an item is part of what runs tools, and no tool itself.
var ErrNoTool = errors.New("it is no tool")

// open is the schema of a tool whose parameters are not known.
var open = json.RawMessage(`{"type":"object"}`)

// notTool refuses an item that is not there to be called.
func notTool(e Element) error {
	what := map[string]string{
		TypeRuntime: "a runtime: tools name it as their executor_id", TypePrimitive: "a primitive: runtimes name it as their executor_id",
		TypeServer: "an MCP server: tools name it as config.server", TypeLibrary: "a library: tools import it",
	}[e.Doc.ToolType]
	if what == "" {
		return nil
	}
	f := tool.Faultf(tool.CodeUnsupported, "%s is %s", e.ID, what).With("path", e.Path).
		WithHint("rye_search with scope tool lists tools.")
	f.Err = ErrNoTool
	return f
}

// Definition is what is told of the tool of a chain.
func (c *Chain) Definition() (tool.Definition, error) {
	t := c.Tool()
	d := tool.Definition{ID: t.ID, Description: t.Doc.Description, Schema: c.Schema()}
	properties, _ := t.Doc.Schema["properties"].(map[string]any)
	for _, e := range c.Elements[1:] { // a parameter that a runtime takes for a command line
		if key, _ := e.Doc.Metadata["shell"].(string); key != "" && properties[key] != nil && !c.isScript() {
			d.CommandLine = key
		}
	}
	return d, nil
}

// Schema is that of the parameters. One that does not say what becomes of others than
// it declares refuses them.
func (c *Chain) Schema() json.RawMessage {
	declared := c.Tool().Doc.Schema
	if declared == nil {
		return open
	}
	schema := maps.Clone(declared)
	if schema["type"] == nil {
		schema["type"] = item.TypeObject
	}
	if closed(schema) {
		schema["additionalProperties"] = false
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return json.RawMessage(fmt.Sprintf("{%q", err)) // which no schema is: whoever uses it says so
	}
	return raw
}

// Declared are the names of the parameters that the schema of the tool declares.
func (c *Chain) Declared() []string {
	properties, _ := c.Tool().Doc.Schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// closed reports whether all parameters of a schema stand in its properties, and it
// leaves open what becomes of others.
func closed(schema map[string]any) bool {
	if _, declares := schema["properties"].(map[string]any); !declares {
		return false
	}
	for _, key := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas"} {
		if _, says := schema[key]; says {
			return false
		}
	}
	return true
}

func (c *Chain) isScript() bool { return c.Tool().Ext != ".yaml" && c.Tool().Ext != ".yml" }
