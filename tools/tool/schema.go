package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

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
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: ownSchemas()})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	if err := refine(t, s); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	for _, m := range more {
		m.addTo(s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return raw, nil
}

// Text is an optional string property that a type does not have itself.
type Text struct{ Name, Description string }

func (m Text) addTo(s *jsonschema.Schema) {
	if _, declared := s.Properties[m.Name]; declared {
		return
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	s.Properties[m.Name] = &jsonschema.Schema{Type: "string", Description: m.Description}
	s.PropertyOrder = append(s.PropertyOrder, m.Name)
}

// ownSchemas are the types whose JSON form differs from their Go form.
func ownSchemas() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[thread.Micros]():   {Type: "number"},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[Object]():          {Type: "object"},
		reflect.TypeFor[json.RawMessage](): {},
	}
}

// hasOwnSchema reports whether a type is one of [ownSchemas]. It is asked for every
// field, and a schema is large.
func hasOwnSchema(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[thread.Micros](), reflect.TypeFor[time.Time](), reflect.TypeFor[Object](), reflect.TypeFor[json.RawMessage]():
		return true
	}
	return false
}

// refine walks t and the schema derived from it side by side: it takes back
// the null that the library allows for slices and pointers, and adds what the
// tags say.
func refine(t reflect.Type, s *jsonschema.Schema) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	dropNull(s)
	if hasOwnSchema(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return refine(t.Elem(), s.Items)
	case reflect.Map:
		return refine(t.Elem(), s.AdditionalProperties)
	case reflect.Struct:
		return refineFields(t, s)
	default:
		return nil
	}
}

func refineFields(t reflect.Type, s *jsonschema.Schema) error {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		prop := s.Properties[name]
		if prop == nil || f.Anonymous {
			continue
		}
		if err := refine(f.Type, prop); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := applyTags(f.Tag, prop); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func dropNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
}

func applyTags(tag reflect.StructTag, s *jsonschema.Schema) error {
	if list, ok := tag.Lookup("enum"); ok {
		target := s
		if s.Type == "array" {
			target = s.Items
		}
		if target.Type != "string" {
			return fmt.Errorf("the enum tag is for strings, not %s", target.Type)
		}
		for v := range strings.SplitSeq(list, ",") {
			target.Enum = append(target.Enum, v)
		}
	}
	var err error
	if s.Minimum, err = bound(tag, "minimum"); err != nil {
		return err
	}
	if s.Maximum, err = bound(tag, "maximum"); err != nil {
		return err
	}
	if text, ok := tag.Lookup("default"); ok {
		value, err := defaultValue(s.Type, text)
		if err != nil {
			return fmt.Errorf("default tag: %w", err)
		}
		s.Default = value
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
