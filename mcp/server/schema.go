package server

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Schemas are those of input and output of a tool. Outputs are six times as long as
// inputs, and are asked for when a call has failed, or when clients are told of them.
type Schemas struct {
	Input  json.RawMessage
	Output func() (json.RawMessage, error)
}

// schemasOf are those the server was given for a tool, else those of its types.
func (s *Server) schemasOf(t Untyped) (given Schemas, err error) {
	if given, ok := s.schemas[t.Name]; ok {
		return given, nil
	}
	if given.Input, err = t.Input(t.Common...); err != nil {
		return given, err
	}
	closed, err := t.Output()
	if err != nil {
		return given, err
	}
	open, err := outputSchema(closed)
	given.Output = func() (json.RawMessage, error) { return open, nil }
	return given, err
}

// told is an input schema as clients are told of it, without some properties. It is
// taken from the schema's tree, which is changed.
//
// Each of its bytes stands in the context of every conversation. So it has names,
// types, what is required, values to choose from and defaults; the keywords that keep
// arguments strict are checked on our side, where a mistake is answered with what is valid.
// Some clients that see a closed schema refuse by themselves and hide what was wrong.
func told(schema *node, without []string) json.RawMessage {
	if properties := schema.member(propertiesMember); properties != nil {
		properties.removeAll(without...)
	}
	onlyTold(schema)
	return schema.JSON()
}

// declares reports whether a schema has a property.
func declares(schema *node, name string) bool {
	properties := schema.member(propertiesMember)
	return properties != nil && properties.member(name) != nil
}

// propertiesMember has the properties of a schema by their names.
const propertiesMember = "properties"

// onlyTold takes away what only a check needs, within a schema and those in it.
func onlyTold(schema *node) {
	schema.removeAll("additionalProperties", "minimum", "maximum")
	if properties := schema.member(propertiesMember); properties != nil {
		for _, property := range properties.kids {
			onlyTold(property)
		}
	}
	if items := schema.member("items"); items != nil {
		onlyTold(items)
	}
}

// failureProperties describe what failures have beside success.
var failureProperties = map[string]json.RawMessage{
	"code":  json.RawMessage(`{"type":"string","description":"stable code of a failure"}`),
	"error": json.RawMessage(`{"type":"string","description":"what was wrong, and what is valid"}`),
	"hint":  json.RawMessage(`{"type":"string","description":"what to call next"}`),
}

// outputSchema derives the output schema of a tool from the closed one of Out.
//
// Clients validate the structured content of failures against it as well, and
// a failure has success and none of the other members that Out requires. So
// the top level requires success alone, names the members of a failure, and
// allows further ones, which failures use for details and later versions for
// more. A member that is present must still have the type that Out gives it. An anyOf
// of the two shapes would say more, but hide the properties from clients that
// look for them at the top level.
func outputSchema(closed json.RawMessage) (json.RawMessage, error) {
	var schema, properties map[string]json.RawMessage
	if err := json.Unmarshal(closed, &schema); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if string(schema["type"]) != `"object"` {
		return nil, errors.New("output schema: a result must be an object")
	}
	if len(schema["properties"]) > 0 {
		if err := json.Unmarshal(schema["properties"], &properties); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	if _, ok := properties["success"]; !ok {
		return nil, errors.New("output schema: every result has the member success")
	}
	for name, property := range failureProperties {
		declared, ok := properties[name]
		switch {
		case !ok:
			properties[name] = property
		case !isString(declared):
			return nil, fmt.Errorf("output schema does not admit a failure: %s is not a string", name)
		}
	}
	var err error
	if schema["properties"], err = json.Marshal(properties); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	schema["required"] = json.RawMessage(`["success"]`)
	delete(schema, "additionalProperties")
	open, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return open, nil
}

// isString reports whether a property is declared as a string.
func isString(property json.RawMessage) bool {
	var declared struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(property, &declared) == nil && declared.Type == "string"
}
