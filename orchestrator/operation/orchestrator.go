package operation

import (
	"bytes"
	_ "embed" // parameters.json
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// generated is the schema of the parameters of [All], which the tests of this
// package write with -update and check: deriving it would take a good part of a
// thread's start.
//
//go:embed parameters.json
var generated json.RawMessage

const orchestratorText = "Operate on threads: wait for them, look at them, stop them, collect their results. " +
	"Times are in seconds, money in US dollars. A call that does not fit is answered with what does."

// Orchestrator defines the tool that runs the operations of the table.
func (t *Table) Orchestrator() (tool.Definition, error) {
	d := tool.Definition{ID: action.OrchestratorID, Description: orchestratorText, Schema: t.parameters}
	if d.Schema != nil {
		return d, nil
	}
	schema, err := t.union()
	if err != nil {
		return d, err
	}
	d.Schema, err = json.Marshal(schema)
	return d, err
}

// union is the schema of a tool that takes the name of an operation and its
// parameters. It is open: each operation checks its own, and knows other names of
// them. It tells types and values; the name of a parameter says what it means, and
// every byte more would be in the context of each thread that has the tool.
func (t *Table) union() (any, error) {
	u := union{schemas: map[string]object{}}
	for _, e := range t.entries {
		if err := u.add(e); err != nil {
			return nil, fmt.Errorf("operation %s: %w", e.Name, err)
		}
	}
	properties := object{{"operation", object{
		{"type", "string"}, {"enum", t.Names()}, {"description", "with its parameters beside it: " + strings.Join(u.calls, ", ")},
	}}}
	for _, name := range u.names {
		properties = append(properties, member{name, u.schemas[name]})
	}
	return object{
		{"type", "object"}, {"properties", properties}, {"required", []string{"operation"}}, {"additionalProperties", true},
	}, nil
}

// union collects the parameters of operations by name.
type union struct {
	names   []string          // as they came
	schemas map[string]object // types and values
	calls   []string          // each operation with the names of its parameters
}

func (u *union) add(e Entry) error {
	raw, err := e.Input()
	if err != nil {
		return err
	}
	var input struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(raw, &input); err != nil {
		return err
	}
	parameters, err := membersOf(input.Properties)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range parameters {
		if err := u.addParameter(p.name, p.value); err != nil {
			return err
		}
		if slices.Contains(input.Required, p.name) {
			names = append(names, p.name)
		} else {
			names = append(names, p.name+"?")
		}
	}
	u.calls = append(u.calls, e.Name+"("+strings.Join(names, " ")+")")
	return nil
}

func (u *union) addParameter(name string, raw json.RawMessage) error {
	parts, err := membersOf(raw)
	if err != nil {
		return err
	}
	var schema object
	for _, p := range parts {
		if p.name == "type" || p.name == "items" || p.name == "enum" {
			schema = append(schema, member{p.name, p.value})
		}
	}
	known, seen := u.schemas[name]
	switch {
	case !seen:
		u.names, u.schemas[name] = append(u.names, name), schema
	case !reflect.DeepEqual(known, schema):
		return fmt.Errorf("parameter %s differs from that of an operation before", name)
	}
	return nil
}

// rawMember is a member of a JSON object as it stands there.
type rawMember struct {
	name  string
	value json.RawMessage
}

// membersOf lists the members of a JSON object in their order.
func membersOf(raw json.RawMessage) (members []rawMember, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		var m rawMember
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m.name, _ = key.(string)
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%q:", m.name)
		b = append(b, value...)
	}
	return append(b, '}'), nil
}
