package tool

import (
	"encoding/json"
	"slices"
)

// Schema is as much of a JSON Schema as tools need to say. The zero value fits any
// value.
type Schema struct {
	Type        string // empty: any
	Description string
	Default     json.RawMessage
	Enum        []string
	Minimum     *float64
	Maximum     *float64
	Format      string
	Items       *Schema // of an array
	Required    []string
	Closed      bool    // no properties but those below
	Values      *Schema // of an object whose keys are not known

	properties []property // in the order in which they are shown
}

type property struct {
	name   string
	schema *Schema
}

// Set gives an object a property, in the place of one of that name.
func (s *Schema) Set(name string, p *Schema) {
	if i := s.property(name); i >= 0 {
		s.properties = slices.Delete(s.properties, i, i+1)
	}
	s.properties = append(s.properties, property{name, p})
}

// Has reports whether an object has the property.
func (s *Schema) Has(name string) bool { return s.property(name) >= 0 }

func (s *Schema) property(name string) int {
	return slices.IndexFunc(s.properties, func(p property) bool { return p.name == name })
}

// JSON is the schema as text. It is written member by member: the process of every
// thread has those of its tools written, and reflecting over schemas was the dearest
// part of its start that is not SQLite's.
func (s *Schema) JSON() json.RawMessage { return s.append(nil) }

func (s *Schema) append(b []byte) []byte {
	start := len(b)
	member := func(name string, value []byte) {
		b = append(b, ',', '"')
		b = append(append(append(b, name...), '"', ':'), value...)
	}
	if s.Type != "" {
		member("type", encoded(s.Type))
	}
	if len(s.properties) > 0 {
		member("properties", nil)
		b = s.appendProperties(b)
	}
	if s.Items != nil {
		member("items", nil)
		b = s.Items.append(b)
	}
	if s.Description != "" {
		member("description", encoded(s.Description))
	}
	if s.Default != nil {
		member("default", encoded(s.Default))
	}
	if s.Enum != nil {
		member("enum", encoded(s.Enum))
	}
	if s.Minimum != nil {
		member("minimum", encoded(*s.Minimum))
	}
	if s.Maximum != nil {
		member("maximum", encoded(*s.Maximum))
	}
	if len(s.Required) > 0 {
		member("required", encoded(s.Required))
	}
	switch {
	case s.Closed:
		member("additionalProperties", []byte("false"))
	case s.Values != nil:
		member("additionalProperties", nil)
		b = s.Values.append(b)
	}
	if s.Format != "" {
		member("format", encoded(s.Format))
	}
	if len(b) == start {
		return append(b, "true"...)
	}
	b[start] = '{'
	return append(b, '}')
}

func (s *Schema) appendProperties(b []byte) []byte {
	for i, p := range s.properties {
		b = append(b, "{,"[min(i, 1)])
		b = append(append(b, encoded(p.name)...), ':')
		b = p.schema.append(b)
	}
	return append(b, '}')
}

// encoded is a value that always has a JSON form.
func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("bug; a schema is not JSON: " + err.Error())
	}
	return raw
}
