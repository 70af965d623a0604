package scripted

import (
	"encoding/json"
	"errors"

	"gopkg.in/yaml.v3"
)

// input is a tool's input: any YAML value, whose strings are templates.
type input struct{ value any }

// UnmarshalYAML compiles the strings.
func (in *input) UnmarshalYAML(n *yaml.Node) error {
	var raw any
	if err := n.Decode(&raw); err != nil {
		return err
	}
	value, err := mapStrings(raw, func(s string) (any, error) { return compile(s) })
	in.value = value
	return at(n, err)
}

// render is the input as JSON.
func (in input) render(r *request) ([]byte, error) {
	if in.value == nil {
		return []byte("{}"), nil
	}
	value, err := mapTexts(in.value, r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// mapStrings replaces every string inside a YAML value.
func mapStrings(v any, f func(string) (any, error)) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return f(v)
	case map[string]any:
		for key, item := range v {
			if v[key], err = mapStrings(item, f); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range v {
			if v[i], err = mapStrings(item, f); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		return nil, errors.New("keys of an input must be strings")
	}
	return v, nil
}

// mapTexts is a copy of a compiled value with its templates rendered.
func mapTexts(v any, r *request) (any, error) {
	var err error
	switch v := v.(type) {
	case text:
		return v.render(r)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if out[key], err = mapTexts(item, r); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			if out[i], err = mapTexts(item, r); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}
