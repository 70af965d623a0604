// Package inputs checks the inputs a directive is started with against what it
// declares, and puts them into its prompt.
package inputs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Declared describes an input to whoever has to give it.
type Declared struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required"`
	Default     any    `json:"default,omitempty"`
	Description string `json:"description,omitempty"`
	Enum        []any  `json:"enum,omitempty"`   // values to choose from
	Secret      bool   `json:"secret,omitempty"` // tools alone get the value
}

// Error lists everything that is wrong with the inputs of a directive, and what
// the directive declares.
type Error struct {
	Problems []string
	Declared []Declared
}

func (e *Error) Error() string { return "invalid inputs: " + strings.Join(e.Problems, "; ") }

// Validate returns the inputs a directive runs with: what was given, and the
// defaults of what was not. A null counts as not given, since models send it
// for what they leave out. A value of another type is taken where it can mean one thing
// only, as [item.Meant] says; a whole number such as 3.0 is a valid integer. The
// values are copies, of the types string, bool, int64 (integer), float64
// (number), []any and map[string]any. In place of a secret stands its
// [Placeholder]; secrets has the values, by name. Undeclared, missing and mistyped
// inputs are an [*Error], which repeats no value of a secret.
func Validate(doc *item.DirectiveDoc, given map[string]any) (values map[string]any, secrets map[string]string, err error) {
	problems := undeclared(doc, maps.Keys(given))
	values, secrets = make(map[string]any, len(doc.Inputs)), map[string]string{}
	for _, in := range doc.Inputs {
		raw := given[in.Name]
		if raw == nil {
			raw = in.Default
		}
		if raw == nil {
			if in.Required {
				problems = append(problems, in.Name+" is required")
			}
			continue
		}
		if in.Secret {
			secret, wrong := checkSecret(doc, in, raw)
			if wrong != "" {
				problems = append(problems, wrong)
				continue
			}
			values[in.Name], secrets[in.Name] = Placeholder(in.Name), secret
			continue
		}
		value, wrong := check(in, raw)
		if len(wrong) > 0 {
			problems = append(problems, wrong...)
			continue
		}
		values[in.Name] = value
	}
	problems = append(problems, repeated(doc, values, secrets)...)
	if len(problems) > 0 {
		return nil, nil, &Error{Problems: problems, Declared: declared(doc)}
	}
	return values, secrets, nil
}

// FromStrings reads inputs given as text, key by key, as on a command line:
// arrays and objects are JSON. Undeclared keys and values that do not read as
// the declared type are an [*Error]; what is missing is for [Validate] to find.
func FromStrings(doc *item.DirectiveDoc, kv map[string]string) (map[string]any, error) {
	problems := undeclared(doc, maps.Keys(kv))
	values := make(map[string]any, len(kv))
	for _, in := range doc.Inputs {
		text, ok := kv[in.Name]
		if !ok {
			continue
		}
		value, err := item.ParseValue(in.Type, text)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", in.Name, err))
			continue
		}
		values[in.Name] = value
	}
	if len(problems) > 0 {
		return nil, &Error{Problems: problems, Declared: declared(doc)}
	}
	return values, nil
}

// undeclared reports the names that the directive does not declare.
func undeclared(doc *item.DirectiveDoc, names func(yield func(string) bool)) []string {
	var problems []string
	for _, name := range slices.Sorted(names) {
		known := slices.ContainsFunc(doc.Inputs, func(in item.Input) bool { return in.Name == name })
		if !known {
			problems = append(problems, fmt.Sprintf("%q is not an input of this directive", name))
		}
	}
	return problems
}

func declared(doc *item.DirectiveDoc) []Declared {
	list := make([]Declared, 0, len(doc.Inputs))
	for _, in := range doc.Inputs {
		list = append(list, Declared{in.Name, in.Type, in.Required, in.Default, in.Description, enumOf(in), in.Secret})
	}
	return list
}

// check returns a copy of raw in the type of the input, or what is wrong.
func check(in item.Input, raw any) (any, []string) {
	value, err := plain(in, raw)
	if err != nil {
		return nil, []string{fmt.Sprintf("%s: %v", in.Name, err)}
	}
	if wrong := validate(in, value); len(wrong) > 0 {
		return nil, wrong
	}
	switch v := value.(type) {
	case int64:
		if in.Type == item.TypeNumber {
			return float64(v), nil
		}
	case float64:
		if in.Type == item.TypeInteger {
			return nil, []string{in.Name + ": the integer is out of range"}
		}
	}
	return value, nil
}

// plain copies a value of an input through JSON, so that what comes from Go callers and
// from the wire has the same few types, and reads it as the input means it.
func plain(in item.Input, v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out, err := item.ReadJSON(data)
	if err != nil {
		return nil, err
	}
	out, _ = item.Meant(property(in), out)
	return item.PlainNumbers(out)
}
