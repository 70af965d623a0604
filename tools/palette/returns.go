package palette

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ReturnName and ReturnID name the tool that ends a directive with outputs.
const (
	ReturnName = "rye_directive_return"
	ReturnID   = "rye/agent/threads/directive_return"
)

// returnDefinition describes directive_return for a directive's outputs.
// Required outputs are named in words only: an error is returned without them.
func returnDefinition(outputs []item.Output) tool.Definition {
	s := &tool.Schema{Type: item.TypeObject, Closed: true}
	var required []string
	set := func(name string, prop *tool.Schema) {
		if !s.Has(name) {
			s.Set(name, prop)
		}
	}
	for _, o := range outputs {
		set(o.Name, outputSchema(o))
		if o.Required {
			required = append(required, o.Name)
		}
	}
	set("status", &tool.Schema{Type: item.TypeString, Enum: []string{"success", "completed", "error"}})
	set("error_detail", text(""))
	return tool.Definition{ID: ReturnID, Description: returnText(required), Schema: s.JSON()}
}

func returnText(required []string) string {
	text := "Return the outputs and end this thread: once, alone, when the work is done; " +
		"with status error and error_detail as soon as it cannot be done."
	if len(required) > 0 {
		text += " Without an error " + strings.Join(required, ", ") + " must be there."
	}
	return text
}

// anElement describes the elements of an array of which nothing is known. A schema with
// nothing in it would be the bare word true for some.
const anElement = "one element"

func outputSchema(o item.Output) *tool.Schema {
	description := o.Description
	if description == "" && o.Type == "" {
		description = "any value" // a schema with nothing in it would be the bare word true
	}
	s := &tool.Schema{Type: o.Type, Description: description}
	if o.Type == "array" {
		// Some providers refuse an array that says nothing about its elements.
		s.Items = &tool.Schema{Description: anElement}
	}
	return s
}
