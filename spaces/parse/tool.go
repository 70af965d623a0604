package parse

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/constant"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Tool reads the metadata of a tool file by its extension, without running it: the keys of a
// YAML tool, the constants of a Python, JavaScript or TypeScript one, and of these and of
// shell scripts the comment at the beginning, with its tags. A declaration that is not
// constant becomes a note of the document. Errors are [*Error].
func Tool(path string, src []byte) (*item.ToolDoc, error) {
	file, err := newSource(path, src)
	if err != nil {
		return nil, err
	}
	ext := extension(path)
	switch ext {
	case ".yaml", ".yml":
		return yamlTool(file)
	case ".py":
		return scriptTool(constant.Python(belowShebang(file), scriptNames()...), header{description: pythonDescription(script(file))}), nil
	case ".sh":
		return shellTool(lineComment(script(file), "#")), nil
	case ".js", ".mjs", ".cjs", ".ts":
		return scriptTool(constant.JavaScript(belowShebang(file), scriptNames()...), scriptHeader(script(file))), nil
	}
	return nil, file.errorf(1, "%q is not the extension of a tool; valid are %s", ext, said(strings.Join(item.Tool.Extensions(), " ")))
}

func extension(file string) string { return path.Ext(slashed(file)) }

func yamlTool(file *source) (*item.ToolDoc, error) {
	m, err := file.yamlMapping(file.text, 1)
	if err != nil {
		return nil, err
	}
	if m == nil || len(m.values) == 0 {
		return nil, file.errorf(1, "a tool in YAML must be a mapping of keys to values")
	}
	doc := &item.ToolDoc{Metadata: m.values}
	fields := []struct {
		to  *string
		key string
	}{
		{&doc.Version, "version"},
		{&doc.ToolType, "tool_type"},
		{&doc.ExecutorID, "executor_id"},
		{&doc.Category, "category"},
		{&doc.Description, "description"},
	}
	for _, f := range fields {
		if *f.to, err = m.text(f.key); err != nil {
			return nil, err
		}
	}
	if doc.Schema, err = toolSchema(m); err != nil {
		return nil, err
	}
	return doc, nil
}

// toolSchema returns the JSON Schema of the parameters, or nil. The three keys
// are spellings of one thing, so only one may hold something.
func toolSchema(m *mapping) (map[string]any, error) {
	var from string
	for _, key := range []string{"config_schema", "input_schema", "parameters"} {
		if m.values[key] == nil {
			continue
		}
		if from != "" {
			return nil, m.src.errorf(m.nodes[key].Line, "%s and %s both describe the parameters; keep one", from, key)
		}
		from = key
	}
	switch value := m.values[from].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		if from == "parameters" && !isSchema(value) {
			return parametersByName(m, value)
		}
		return value, nil
	case []any:
		if from == "parameters" {
			return parameterList(m, value)
		}
	}
	return nil, m.src.errorf(m.nodes[from].Line, "%s must be a JSON Schema of an object", from)
}

// isSchema tells a JSON Schema from a mapping of parameter names.
func isSchema(value map[string]any) bool {
	_, properties := value["properties"].(map[string]any)
	return properties || value["type"] == item.TypeObject
}

// parametersByName reads the form {name: {type, required, description, …}}.
func parametersByName(m *mapping, params map[string]any) (map[string]any, error) {
	s := newSchema(m)
	lines := make(map[string]int)
	for pair := range slices.Chunk(m.nodes["parameters"].Content, 2) {
		lines[pair[0].Value] = pair[0].Line
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		line := lines[name]
		if line == 0 { // it came through a merge key
			line = m.nodes["parameters"].Line
		}
		if err := s.add(name, line, params[name]); err != nil {
			return nil, err
		}
	}
	return s.object(), nil
}

// parameterList reads the form [{name, type, required, description, …}].
func parameterList(m *mapping, params []any) (map[string]any, error) {
	s := newSchema(m)
	for i, param := range params {
		line := m.nodes["parameters"].Content[i].Line
		fields, ok := param.(map[string]any)
		if !ok {
			return nil, m.src.errorf(line, "a parameter must be a mapping with name, type and description")
		}
		name, _ := fields["name"].(string)
		if name == "" {
			return nil, m.src.errorf(line, "a parameter needs a name")
		}
		if err := s.add(name, line, fields); err != nil {
			return nil, err
		}
	}
	return s.object(), nil
}

// schemaBuilder makes a closed JSON Schema from declared parameters.
type schemaBuilder struct {
	src        *source
	properties map[string]any
	required   []any
}

func newSchema(m *mapping) *schemaBuilder {
	return &schemaBuilder{src: m.src, properties: make(map[string]any)}
}

// add declares a parameter. Keys other than name, type and required are taken
// over, as they are those of JSON Schema: description, default, enum, items …
func (s *schemaBuilder) add(name string, line int, declaration any) error {
	fields, ok := declaration.(map[string]any)
	if !ok {
		return s.src.errorf(line, "parameter %q must be a mapping with type and description", name)
	}
	if _, twice := s.properties[name]; twice {
		return s.src.errorf(line, "parameter %q is declared twice", name)
	}
	property := map[string]any{"type": item.TypeString}
	for key, value := range fields {
		if !slices.Contains([]string{"name", "type", "required"}, key) {
			property[key] = value
		}
	}
	if declared, ok := fields["type"]; ok {
		text, _ := declared.(string)
		typ, err := item.ParseType(text)
		if err != nil {
			return s.src.errorf(line, "parameter %q: %v", name, err)
		}
		property["type"] = typ
	}
	switch required := fields["required"].(type) {
	case nil:
	case bool:
		if required {
			s.required = append(s.required, name)
		}
	default:
		return s.src.errorf(line, "parameter %q: required must be true or false", name)
	}
	s.properties[name] = property
	return nil
}

func (s *schemaBuilder) object() map[string]any {
	schema := map[string]any{
		"type":                 item.TypeObject,
		"properties":           s.properties,
		"additionalProperties": false,
	}
	if len(s.required) > 0 {
		schema["required"] = s.required
	}
	return schema
}
