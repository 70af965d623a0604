package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Validate checks a JSON object against a schema as it stands. Misfits come back as
// a *Fault with [CodeBadArguments] that names every problem and what is valid
// instead; a schema that does not compile is a plain error.
func Validate(schema, args json.RawMessage) error {
	return Checker(func() (json.RawMessage, error) { return schema, nil })(args)
}

// Accept checks arguments the way [New] reads them, and returns them as they were
// meant: see there and at [Validate].
func Accept(schema, args json.RawMessage) (json.RawMessage, error) {
	c, err := compile(schema)
	if err != nil {
		return nil, err
	}
	return c.accept(args)
}

// Fill is Accept, and puts in the defaults of the schema's own properties.
func Fill(schema, args json.RawMessage) (json.RawMessage, error) {
	accepted, err := Accept(schema, args)
	if err != nil {
		return nil, err
	}
	defaults, err := topDefaults(schema)
	if err != nil || string(defaults) == "{}" {
		return accepted, err
	}
	var filled, given map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(defaults, &filled), json.Unmarshal(accepted, &given)); err != nil {
		return nil, err
	}
	maps.Copy(filled, given)
	return json.Marshal(filled)
}

// Checker returns a function that checks a JSON object against a schema as it
// stands. The schema is made and compiled when it is first needed.
func Checker(schema func() (json.RawMessage, error)) func(args json.RawMessage) error {
	ready := sync.OnceValues(func() (*compiled, error) {
		raw, err := schema()
		if err != nil {
			return nil, err
		}
		return compile(raw)
	})
	return func(args json.RawMessage) error {
		c, err := ready()
		if err != nil {
			return err
		}
		value, err := c.read(args)
		if err != nil {
			return err
		}
		return c.check(value)
	}
}

// compiled is a schema ready for use, with its decoded text to explain from.
type compiled struct {
	doc     any
	schema  *jsonschema.Schema
	aliases []alias
}

// schemaURL names the schema inside the compiler; nothing is fetched from it.
const schemaURL = "tool:schema"

func compile(raw json.RawMessage) (*compiled, error) {
	doc, err := item.DecodeJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	if err := weighLoops(doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	// A schema comes from an item: it must not make us read files or URLs.
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("reference to %s: a schema may refer to itself only", url)
	}
	if err := c.AddResource(schemaURL, bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	s, err := c.Compile(schemaURL)
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		for len(wrong.Causes) > 0 {
			wrong = wrong.Causes[0]
		}
		return nil, fmt.Errorf("schema: %s: %s", item.Shown(wrong.InstanceLocation), item.ShownIn(wrong.Message))
	}
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &compiled{doc: doc, schema: s}, nil
}

// accept reads arguments as they were meant, and checks them.
func (c *compiled) accept(args json.RawMessage) (json.RawMessage, error) {
	value, err := c.read(args)
	if err != nil {
		return nil, err
	}
	renamed, problems := rename(value, c.aliases)
	if len(problems) > 0 {
		return nil, c.fault(problems...)
	}
	_, changed := item.Meant(c.doc, value)
	if err := c.check(value); err != nil || !changed && len(renamed) == 0 {
		return args, inTheirWords(err, renamed)
	}
	return encodeArguments(value)
}

func (c *compiled) read(args json.RawMessage) (map[string]any, error) {
	value, err := item.DecodeJSON(args)
	if err != nil {
		return nil, c.fault(fmt.Sprintf("arguments are not valid JSON: %v", err))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, c.fault(fmt.Sprintf("arguments must be a JSON object, got %s", item.TypeName(value)))
	}
	return object, nil
}

func (c *compiled) check(value map[string]any) error {
	if err := weigh(c.doc, value); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	err := c.schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("schema: %w", err)
	}
	return c.fault(explain(c.doc, value, invalid)...)
}

// HintArguments is what to do about arguments that do not fit a schema.
const HintArguments = "Correct the arguments and call again."

// fault names the problems. It does not repeat the schema: the model has it, and
// it is longer than all problems together.
func (c *compiled) fault(problems ...string) *Fault {
	return Faultf(CodeBadArguments, "%s", strings.Join(problems, "; ")).WithHint(HintArguments)
}
