package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"gopkg.in/yaml.v3"
)

// text is a string that is rendered for each request.
type text struct{ tmpl *template.Template }

// UnmarshalYAML compiles the template.
func (t *text) UnmarshalYAML(n *yaml.Node) error {
	var src string
	if err := n.Decode(&src); err != nil {
		return err
	}
	compiled, err := compile(src)
	t.tmpl = compiled
	return at(n, err)
}

func (t text) set() bool { return t.tmpl != nil }

func compile(src string) (*template.Template, error) {
	return template.New("script").Option("missingkey=error").Funcs((&request{}).functions()).Parse(src)
}

// render fills the template in for a request; without one it is empty.
func (t text) render(r *request) (string, error) {
	if t.tmpl == nil {
		return "", nil
	}
	own, err := t.tmpl.Clone()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = own.Funcs(r.functions()).Execute(&out, struct {
		Turn  int
		Model string
	}{r.turn(), r.Model})
	return out.String(), err
}

// input is a tool's input: any YAML value, whose strings are templates.
type input struct{ value any }

// UnmarshalYAML compiles the strings.
func (in *input) UnmarshalYAML(n *yaml.Node) error {
	var raw any
	if err := n.Decode(&raw); err != nil {
		return err
	}
	value, err := mapStrings(raw, func(s string) (any, error) {
		compiled, err := compile(s)
		return text{compiled}, err
	})
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

// functions are what templates can call about a request.
func (r *request) functions() template.FuncMap {
	return template.FuncMap{
		"result":  r.result,
		"results": r.resultsOf,
		"first":   func(re string) (string, error) { return capture(re, r.first(), "first") },
		"last":    func(re string) (string, error) { return capture(re, r.last(), "last") },
		"toJSON": func(v any) (string, error) {
			out, err := json.Marshal(v)
			return string(out), err
		},
	}
}

func (r *request) result(n int) (any, error) {
	all := r.toolResults()
	i := n
	if i < 0 {
		i += len(all)
	}
	if i < 0 || i >= len(all) {
		return nil, fmt.Errorf("there is no tool result %d, the conversation has %d", n, len(all))
	}
	return parsed(all[i]), nil
}

func (r *request) resultsOf(key string) []any {
	found := []any{} // none is [] in JSON, not null
	for _, result := range r.toolResults() {
		collect(parsed(result), key, func(v any) {
			same := func(other any) bool { return fmt.Sprint(other) == fmt.Sprint(v) }
			if !slices.ContainsFunc(found, same) {
				found = append(found, v)
			}
		})
	}
	return found
}

// collect calls f for every value of key, outer before inner, siblings in the
// order of their keys.
func collect(v any, key string, f func(any)) {
	switch v := v.(type) {
	case map[string]any:
		if value, ok := v[key]; ok {
			f(value)
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			collect(v[k], key, f)
		}
	case []any:
		for _, item := range v {
			collect(item, key, f)
		}
	}
}

func parsed(result string) any {
	var v any
	if json.Unmarshal([]byte(result), &v) != nil {
		return result
	}
	return v
}

func capture(expr, in, where string) (string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return "", err
	}
	m := re.FindStringSubmatch(in)
	switch {
	case m == nil:
		return "", fmt.Errorf("%q does not match the %s message", expr, where)
	case len(m) > 1:
		return m[1], nil
	}
	return m[0], nil
}
