package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// SchemaFor derives a JSON Schema from T. Structs become closed objects; a
// field is optional when its json tag says omitempty or omitzero, and null is
// valid nowhere. [thread.Micros] is a number of dollars, [time.Time] a
// date-time string, [Object] an open object, [json.RawMessage] any value. These
// field tags are read:
//
//	json:"name,omitempty"      name, and whether it may be left out
//	jsonschema:"what it is"    description for a model
//	enum:"all,any"             the values a string, or each string of a list, may have
//	default:"all"              the value that holds when it is left out: text for a string, JSON for the rest
//	minimum:"1"                least value of a number
//	maximum:"100"              greatest value of a number
//
// A default is filled in by tools made with [New] where the field belongs to
// the tool's own input and not to a struct within it.
func SchemaFor[T any]() (json.RawMessage, error) { return SchemaWith[T]() }

// SchemaWith is [SchemaFor] with properties beside those of T. One that T has
// itself stays as it is.
func SchemaWith[T any](more ...Text) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	s, err := schemaOf(t, nil)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	for _, m := range more {
		if s.property(m.Name) < 0 {
			s.Set(m.Name, &Schema{Type: "string", Description: m.Description})
		}
	}
	return s.JSON(), nil
}

// schemaWithout is [SchemaFor] without some optional properties.
func schemaWithout[T any](names []string) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	s, err := schemaOf(t, nil)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	s.properties = slices.DeleteFunc(s.properties, func(p property) bool { return slices.Contains(names, p.name) })
	return s.JSON(), nil
}

// Text is an optional string property that a type does not have itself.
type Text struct{ Name, Description string }

// schemaOf derives the schema of a type, within others.
func schemaOf(t reflect.Type, within []reflect.Type) (*Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if own, ok := ownSchema(t); ok {
		return &own, nil
	}
	for _, outer := range within {
		if t == outer && t.Name() != "" {
			return nil, fmt.Errorf("%s is within itself", t)
		}
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}, nil
	case reflect.String:
		return &Schema{Type: "string"}, nil
	case reflect.Interface:
		return &Schema{}, nil
	case reflect.Slice:
		items, err := schemaOf(t.Elem(), within)
		return &Schema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := schemaOf(t.Elem(), within)
		if t.Key().Kind() != reflect.String {
			err = fmt.Errorf("%s has keys that are no strings", t)
		}
		return &Schema{Type: "object", Values: values}, err
	case reflect.Struct:
		return schemaOfStruct(t, within)
	default:
		return nil, fmt.Errorf("%s has no JSON form", t)
	}
}

// ownSchema is the schema of the types whose JSON form differs from their Go form.
func ownSchema(t reflect.Type) (Schema, bool) {
	switch t {
	case reflect.TypeFor[thread.Micros]():
		return Schema{Type: "number"}, true
	case reflect.TypeFor[time.Time]():
		return Schema{Type: "string", Format: "date-time"}, true
	case reflect.TypeFor[Object]():
		return Schema{Type: "object"}, true
	case reflect.TypeFor[json.RawMessage]():
		return Schema{}, true
	}
	return Schema{}, false
}

func schemaOfStruct(t reflect.Type, within []reflect.Type) (*Schema, error) {
	s := &Schema{Type: "object", Closed: true}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" && options == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		prop, err := schemaOf(f.Type, within)
		if err == nil {
			err = prop.applyTags(f.Tag)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Set(name, prop)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

func (s *Schema) applyTags(tag reflect.StructTag) (err error) {
	if text, ok := tag.Lookup("jsonschema"); ok {
		if text == "" {
			return errors.New("the jsonschema tag is empty")
		}
		s.Description = text
	}
	if list, ok := tag.Lookup("enum"); ok {
		target := s
		if s.Type == "array" {
			target = s.Items
		}
		if target.Type != "string" {
			return fmt.Errorf("the enum tag is for strings, not %s", target.Type)
		}
		target.Enum = strings.Split(list, ",")
	}
	if s.Minimum, err = bound(tag, "minimum"); err != nil {
		return err
	}
	if s.Maximum, err = bound(tag, "maximum"); err != nil {
		return err
	}
	if text, ok := tag.Lookup("default"); ok {
		if s.Default, err = defaultValue(s.Type, text); err != nil {
			return fmt.Errorf("default tag: %w", err)
		}
	}
	return nil
}

// bound is the number in a tag; nil without the tag.
func bound(tag reflect.StructTag, name string) (*float64, error) {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s tag: %w", name, err)
	}
	return &value, nil
}

func defaultValue(typ, text string) (json.RawMessage, error) {
	if typ == "string" {
		return json.Marshal(text)
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is not JSON", text)
	}
	return json.RawMessage(text), nil
}
