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
// of fn into a [*PanicError]. The schema is made when it is first asked for: a
// process knows many tools of which its model is shown few. That none can be made is
// a mistake in the program, and panics. Parameters that are not told of are missing in
// the definition of the tool alone.
func New[In any](def Definition, fn func(ctx context.Context, env Env, in In) (any, error)) Tool {
	t := &function[In]{outline: def, fn: fn}
	t.schema = sync.OnceValue(func() json.RawMessage { return schemaOrPanic[In](def) })
	t.decoder = newDecoder[In](def.ID, func() (json.RawMessage, error) {
		if len(def.Schema) == 0 && len(def.Untold) > 0 {
			return SchemaFor[In]()
		}
		return t.schema(), nil
	})
	t.outline.Schema = nil
	return t
}

func schemaOrPanic[In any](def Definition) json.RawMessage {
	schema := def.Schema
	if len(schema) == 0 {
		var err error
		if schema, err = schemaWithout[In](def.Untold); err != nil {
			panic(fmt.Sprintf("tool %s: %v", def.ID, err))
		}
	}
	if !json.Valid(schema) {
		panic(fmt.Sprintf("tool %s: the schema is not JSON", def.ID))
	}
	return schema
}

type function[In any] struct {
	outline Definition // without the schema
	schema  func() json.RawMessage
	fn      func(context.Context, Env, In) (any, error)
	decoder decoder[In]
}

func (t *function[In]) Definition() Definition {
	d := t.outline
	d.Schema = t.schema()
	return d
}

// Outline implements [Outliner].
func (t *function[In]) Outline() Definition { return t.outline }

// Outliner is implemented by tools whose schema takes time to make.
type Outliner interface {
	// Outline is the definition without the schema.
	Outline() Definition
}

// OutlineOf is the definition of a tool, without its schema where that would have to
// be made.
func OutlineOf(t Tool) Definition {
	if o, ok := t.(Outliner); ok {
		return o.Outline()
	}
	return t.Definition()
}

func (t *function[In]) Call(ctx context.Context, env Env, args json.RawMessage) (result any, err error) {
	in, err := t.decoder.decode(env, args)
	if err != nil {
		return nil, err
	}
	return Guarded(t.outline.ID, func() (any, error) { return t.fn(ctx, env, in) })
}

// Guarded runs what stands behind a tool and turns a panic into a [*PanicError].
func Guarded(id string, call func() (any, error)) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, &PanicError{ToolID: id, Value: v, Stack: debug.Stack()}
		}
	}()
	return call()
}

// Decoder returns a function that reads arguments as the tools of [New] do: one
// check against the schema, the defaults of its own properties, one strict
// decoding. The schema is made and compiled when it is first needed. ID names the
// tool in errors that are not the caller's.
func Decoder[In any](id string, schema func() (json.RawMessage, error)) func(args json.RawMessage) (In, error) {
	d := newDecoder[In](id, schema)
	return func(args json.RawMessage) (In, error) { return d.decode(Env{}, args) }
}

type decoder[In any] struct {
	id      string
	prepare func() (*prepared, error)
}

// prepared is a schema as arguments are read by it.
type prepared struct {
	*compiled
	defaults json.RawMessage
}

// newDecoder prepares nothing yet: most processes call few of their tools, and
// compiling a schema costs more than decoding arguments with it.
func newDecoder[In any](id string, schema func() (json.RawMessage, error)) decoder[In] {
	return decoder[In]{id, sync.OnceValues(func() (*prepared, error) {
		raw, err := schema()
		if err != nil {
			return nil, err
		}
		c, err := compile(raw)
		if err != nil {
			return nil, err
		}
		c.aliases = aliasesOf(reflect.TypeFor[In]())
		defaults, err := topDefaults(raw)
		return &prepared{c, defaults}, err
	})}
}

func (d decoder[In]) decode(env Env, given json.RawMessage) (in In, err error) {
	p, err := d.prepare()
	if err != nil {
		return in, fmt.Errorf("tool %s: %w", d.id, err)
	}
	if len(given) == 0 {
		given = json.RawMessage("{}")
	}
	args, err := p.accept(given)
	if err != nil {
		return in, p.withoutSecrets(env, given, err)
	}
	if err := json.Unmarshal(p.defaults, &in); err != nil {
		return in, fmt.Errorf("tool %s: defaults: %w", d.id, err)
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return in, p.fault(fmt.Sprintf("arguments cannot be read: %v", err))
	}
	return in, nil
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
