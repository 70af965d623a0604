package palette

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// brief is the schema of a tool without what a model need not be told. Arguments
// are held against the whole, and the answer to a wrong one says what is valid.
func brief(schema json.RawMessage) json.RawMessage {
	// In a text the quotes would be escaped.
	return bytes.ReplaceAll(schema, []byte(`,"additionalProperties":false`), nil)
}

// Keywords of a schema whose values are schemas: by name, alone or listed.
var (
	namedSchemas  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
	directSchemas = []string{
		keyItems, "additionalItems", "additionalProperties", "contains", "propertyNames", "anyOf", "oneOf", "allOf", "prefixItems",
		"not", "if", "then", "else",
	}
	needless = []string{"$schema", "$comment", "title", "examples", "deprecated", "readOnly", "writeOnly"}
)

const keyItems = "items"

// maxNesting is how deep schemas within others are looked at.
const maxNesting = 32

// plainly copies the schema of an item without what a model need not be told:
// titles, examples, marks, and that other properties are refused. Arrays say of which
// elements they are.
func plainly(schema map[string]any, depth int) map[string]any {
	out := make(map[string]any, len(schema))
	for key, value := range schema {
		switch {
		case slices.Contains(needless, key), key == "additionalProperties" && value == false:
		case depth >= maxNesting:
			out[key] = value
		case slices.Contains(namedSchemas, key):
			out[key] = eachPlainly(value, depth)
		case slices.Contains(directSchemas, key):
			out[key] = subschema(value, depth)
		default:
			out[key] = value
		}
	}
	if isArray(out["type"]) {
		out[keyItems] = elements(out[keyItems])
	}
	return out
}

// isArray reports whether a type, or a list of types, allows an array.
func isArray(types any) bool {
	list, _ := types.([]any)
	return types == item.TypeArray || slices.Contains(list, any(item.TypeArray))
}

// elements is what an array says of its elements: some providers refuse one that says
// nothing, and others one that says it element by element, as before JSON Schema 2020-12.
// The elements are checked when the tool is called.
func elements(items any) any {
	if each, ok := items.([]any); ok && len(each) > 0 {
		return map[string]any{"anyOf": each}
	}
	if one, ok := items.(map[string]any); ok && len(one) > 0 {
		return one
	}
	return map[string]any{"description": anElement}
}

func eachPlainly(value any, depth int) any {
	named, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := make(map[string]any, len(named))
	for name, one := range named {
		out[name] = subschema(one, depth)
	}
	return out
}

func subschema(value any, depth int) any {
	if depth >= maxNesting {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		return plainly(v, depth+1)
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = subschema(one, depth+1)
		}
		return list
	default:
		return value
	}
}
