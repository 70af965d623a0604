package palette

import (
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ReturnName and ReturnID name the tool that ends a directive with outputs.
const (
	ReturnName = "rye_directive_return"
	ReturnID   = "rye/agent/threads/directive_return"
)

// returnDefinition describes directive_return for a directive's outputs.
// Required outputs are marked in words only: an error is returned without them.
func returnDefinition(outputs []item.Output) tool.Definition {
	s := &tool.Schema{Type: "object", Closed: true}
	set := func(name string, prop *tool.Schema) {
		if !s.Has(name) {
			s.Set(name, prop)
		}
	}
	for _, o := range outputs {
		set(o.Name, outputSchema(o))
	}
	set("status", &tool.Schema{
		Type: "string", Enum: []string{"success", "completed", "error"},
		Description: "success (or completed, which means the same) when the work is done; error when it cannot be done",
	})
	set("error_detail", &tool.Schema{
		Type: "string", Description: "with status error: what is missing or went wrong",
	})
	return tool.Definition{
		ID: ReturnID,
		Description: "Return the outputs of the directive and end this thread. Call it once, alone, when the work is " +
			"done, or with status error and error_detail as soon as it is clear that it cannot be done.",
		Schema: s.JSON(),
	}
}

func outputSchema(o item.Output) *tool.Schema {
	description := o.Description
	if o.Required {
		if description != "" {
			description += " "
		}
		description += "(required, except with status error)"
	}
	if description == "" {
		description = "output of the directive" // a schema with nothing in it would be the bare word true
	}
	s := &tool.Schema{Type: o.Type, Description: description}
	if o.Type == "array" {
		// Some providers refuse an array that says nothing about its elements.
		s.Items = &tool.Schema{Description: "one element"}
	}
	return s
}
