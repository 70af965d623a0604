package inputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Schema returns the JSON Schema of the inputs of a directive: a closed object.
// An input with a default is not required in it.
func Schema(doc *item.DirectiveDoc) map[string]any {
	properties := make(map[string]any, len(doc.Inputs))
	var required []any
	for _, in := range doc.Inputs {
		properties[in.Name] = property(in)
		if in.Required && in.Default == nil {
			required = append(required, in.Name)
		}
	}
	schema := map[string]any{
		"type":                 item.TypeObject,
		"properties":           properties,
		"additionalProperties": false,
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// property is the schema of one input.
func property(in item.Input) map[string]any {
	p := map[string]any{"type": in.Type}
	if in.Description != "" {
		p["description"] = in.Description
	}
	if in.Secret {
		p["writeOnly"], p["minLength"] = true, MinSecret
	}
	if in.Default != nil {
		p["default"] = in.Default
	}
	if enum := enumOf(in); enum != nil {
		p["enum"] = enum
	}
	return p
}

// enumOf are the values to choose from of an input, in its type; nil for any.
func enumOf(in item.Input) []any {
	if len(in.Enum) == 0 {
		return nil
	}
	enum := make([]any, len(in.Enum))
	for i, text := range in.Enum {
		enum[i] = text
		if value, err := item.ParseValue(in.Type, text); err == nil {
			enum[i] = value
		}
	}
	return enum
}

// validate checks a value against the schema of an input and returns what is
// wrong with it.
func validate(in item.Input, value any) []string {
	schema, err := compile(property(in))
	if err != nil {
		return []string{in.Name + ": " + err.Error()}
	}
	err = schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{in.Name + ": " + err.Error()}
	}
	return leaves(in.Name, invalid)
}

func compile(schema map[string]any) (*jsonschema.Schema, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	const url = "input.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(url, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// leaves lists the innermost reasons of a validation error, each with the place
// within the input.
func leaves(name string, e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		return []string{name + strings.ReplaceAll(e.InstanceLocation, "/", ".") + ": " + e.Message}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, leaves(name, cause)...)
	}
	return all
}
