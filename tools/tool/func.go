package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
)

// New makes a tool from a Go function. Where def.Schema is empty it is derived
// from In with [SchemaFor]. A call takes its arguments as they are meant, where they
// can mean one thing only (see [meant] and the alias tags of In), validates them, fills in the
// defaults of the schema's own properties, decodes strictly and turns a panic
// of fn into a [*PanicError]. New panics when no schema can be made, which is a
// mistake in the program.
func New[In any](def Definition, fn func(ctx context.Context, env Env, in In) (any, error)) Tool {
	if len(def.Schema) == 0 {
		schema, err := SchemaFor[In]()
		if err != nil {
			panic(fmt.Sprintf("tool %s: %v", def.ID, err))
		}
		def.Schema = schema
	}
	if !json.Valid(def.Schema) {
		panic(fmt.Sprintf("tool %s: the schema is not JSON", def.ID))
	}
	return &function[In]{
		def: def,
		fn:  fn,
		// Most processes call few of their tools, and compiling a schema costs
		// more than decoding arguments with it.
		compile: sync.OnceValues(func() (*compiled, error) {
			c, err := compile(def.Schema)
			if err == nil {
				c.aliases = aliasesOf(reflect.TypeFor[In]())
			}
			return c, err
		}),
		defaults: sync.OnceValues(func() (json.RawMessage, error) { return topDefaults(def.Schema) }),
	}
}

type function[In any] struct {
	def      Definition
	fn       func(context.Context, Env, In) (any, error)
	compile  func() (*compiled, error)
	defaults func() (json.RawMessage, error)
}

func (t *function[In]) Definition() Definition { return t.def }

func (t *function[In]) Call(ctx context.Context, env Env, args json.RawMessage) (result any, err error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	c, err := t.compile()
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", t.def.ID, err)
	}
	given := args
	if args, err = c.accept(given); err != nil {
		return nil, c.withoutSecrets(env, given, err)
	}
	var in In
	if err := t.setDefaults(&in); err != nil {
		return nil, fmt.Errorf("tool %s: defaults: %w", t.def.ID, err)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, c.fault(fmt.Sprintf("arguments cannot be read: %v", err))
	}
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, &PanicError{ToolID: t.def.ID, Value: v, Stack: debug.Stack()}
		}
	}()
	return t.fn(ctx, env, in)
}

// withoutSecrets is a refusal that repeats arguments, in parts, with placeholders in
// place of secrets.
func (c *compiled) withoutSecrets(env Env, args json.RawMessage, refusal error) error {
	masked := env.Masked(string(args))
	if masked == string(args) {
		return refusal
	}
	if _, err := c.accept(json.RawMessage(masked)); err != nil {
		return err
	}
	return c.fault("with the values of its secrets the arguments do not fit the schema")
}

func (t *function[In]) setDefaults(in *In) error {
	defaults, err := t.defaults()
	if err != nil {
		return err
	}
	return json.Unmarshal(defaults, in)
}

// PanicError says that the Go function of a tool panicked. The stack is for
// logs; the message, which a model may see, leaves it out.
type PanicError struct {
	ToolID string
	Value  any
	Stack  []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("tool %s panicked: %v", e.ToolID, e.Value)
}

// topDefaults collects the defaults of a schema's own properties as an object.
func topDefaults(schema json.RawMessage) (json.RawMessage, error) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	defaults := make(map[string]json.RawMessage)
	for name, raw := range s.Properties {
		var prop struct {
			Default json.RawMessage `json:"default"`
		}
		// A property may also be the schema true, which has no default.
		if json.Unmarshal(raw, &prop) == nil && prop.Default != nil {
			defaults[name] = prop.Default
		}
	}
	return json.Marshal(defaults)
}
