package config

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

//go:embed schema
var schemaFiles embed.FS

// The $comment of a property that is not read: a key that files of the original
// system have, and one that older files of ours have.
const (
	notUsedYet = "not used yet"
	notNeeded  = "not needed any more"
)

func isUnused(property *jsonschema.Schema) bool {
	return property.Comment == notUsedYet || property.Comment == notNeeded
}

// compileSchema compiles a file of schema/.
func compileSchema(name string) (*jsonschema.Schema, error) {
	file, err := schemaFiles.Open("schema/" + name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	compiler := jsonschema.NewCompiler()
	compiler.ExtractAnnotations = true // for $comment and description
	if err := compiler.AddResource(name, file); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// check removes the keys the schema does not know, or does not use yet, with a
// warning each, and then validates the rest.
func (l layer) check(schema *jsonschema.Schema) (warnings []string, err error) {
	warnings = l.prune(schema, l.values, nil)
	err = schema.Validate(l.values)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return warnings, l.firstOf(schema, leaves(invalid))
	}
	return warnings, err
}

func (l layer) prune(schema *jsonschema.Schema, values map[string]any, at []string) (warnings []string) {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		here := below(at, key)
		property := schema.Properties[key]
		if property == nil {
			property, _ = schema.AdditionalProperties.(*jsonschema.Schema)
		}
		switch {
		case property == nil && schema.AdditionalProperties == false:
			warnings = append(warnings, l.warning(here, "unknown key"+suggestion(key, schema)))
			delete(values, key)
		case property != nil && isUnused(property):
			warnings = append(warnings, l.warning(here, property.Comment))
			delete(values, key)
		case property != nil:
			warnings = append(warnings, l.pruneValue(property, values[key], here)...)
		}
	}
	return warnings
}

// pruneValue goes into mappings, and into those of a list.
func (l layer) pruneValue(schema *jsonschema.Schema, value any, at []string) (warnings []string) {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	switch v := value.(type) {
	case map[string]any:
		return l.prune(schema, v, at)
	case []any:
		for i, element := range v {
			if schema.Items2020 != nil {
				warnings = append(warnings, l.pruneValue(schema.Items2020, element, below(at, strconv.Itoa(i)))...)
			}
		}
	}
	return warnings
}

func (l layer) warning(at []string, text string) string {
	return fmt.Sprintf("%s:%d: %s: %s", l.path, l.lineOf(at), dotted(at), text)
}

// suggestion names the key that was likely meant.
func suggestion(key string, schema *jsonschema.Schema) string {
	var used []string
	for name, property := range schema.Properties {
		if !isUnused(property) {
			used = append(used, name)
		}
	}
	slices.Sort(used)
	if near := item.Nearest(key, used); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// leaves are the single faults below a validation error.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

// firstOf makes an error of the fault that stands first in the file. The words of the schema
// tell what a text must be like: nobody should have to read its pattern.
func (l layer) firstOf(schema *jsonschema.Schema, faults []*jsonschema.ValidationError) error {
	first := slices.MinFunc(faults, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(
			cmp.Compare(l.lineOf(item.PointerKeys(a.InstanceLocation)), l.lineOf(item.PointerKeys(b.InstanceLocation))),
			cmp.Compare(a.InstanceLocation, b.InstanceLocation),
			cmp.Compare(a.Message, b.Message))
	})
	at := item.PointerKeys(first.InstanceLocation)
	if form := formOf(schema, at); form != "" && strings.HasSuffix(first.KeywordLocation, "/pattern") {
		return l.errorAt(at, "want %s", form)
	}
	return l.errorAt(at, "%s", item.ShownIn(first.Message))
}

// formOf is what a schema says in words of the value at a place; empty: nothing.
func formOf(schema *jsonschema.Schema, at []string) string {
	for schema != nil && schema.Ref != nil {
		schema = schema.Ref
	}
	if schema == nil {
		return ""
	}
	if len(at) == 0 {
		return schema.Description
	}
	if property := schema.Properties[at[0]]; property != nil {
		return formOf(property, at[1:])
	}
	if others, ok := schema.AdditionalProperties.(*jsonschema.Schema); ok {
		return formOf(others, at[1:])
	}
	return formOf(schema.Items2020, at[1:])
}

// dotted is the place of a value as messages show it.
func dotted(at []string) string { return strings.Join(item.ShownAll(at), ".") }
