// Package jsonschema has of version 6 of jsonschema what mcp-go calls, on top of
// version 5, which this program uses itself. mcp-go checks with it only what its
// options WithInputSchemaValidation and WithOutputSchemaValidation ask for. We use
// neither, and still each process, of which every thread is one, would compile the
// nineteen meta-schemas of version 6 before main: go.mod replaces it by this.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	v5 "github.com/santhosh-tekuri/jsonschema/v5"
)

// UnmarshalJSON reads one JSON value, whose numbers are [json.Number].
func UnmarshalJSON(r io.Reader) (any, error) {
	decoder := json.NewDecoder(r)
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return value, nil
}

// Compiler compiles schemas that are given to it, and loads no others.
type Compiler struct{ compiler *v5.Compiler }

// NewCompiler returns a compiler of the newest draft, for schemas that name none.
func NewCompiler() *Compiler {
	c := v5.NewCompiler()
	c.LoadURL = func(address string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%s is not loaded: a schema that it refers to must be part of it", address)
	}
	return &Compiler{compiler: c}
}

// AddResource gives the document at url, as [UnmarshalJSON] returned it.
func (c *Compiler) AddResource(url string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return c.compiler.AddResource(url, bytes.NewReader(text))
}

// Compile compiles the schema at url.
func (c *Compiler) Compile(url string) (*Schema, error) {
	schema, err := c.compiler.Compile(url)
	if err != nil {
		return nil, err
	}
	return &Schema{schema: schema}, nil
}

// Schema is a schema that has been compiled.
type Schema struct{ schema *v5.Schema }

// Validate returns a [ValidationError] where a value, as [UnmarshalJSON] returned it, is
// not what the schema says.
func (s *Schema) Validate(value any) error {
	err := s.schema.Validate(value)
	if invalid := new(v5.ValidationError); errors.As(err, &invalid) {
		return validationError(invalid)
	}
	return err
}

// ValidationError says where a value is not what its schema says.
type ValidationError struct {
	InstanceLocation []string // the steps to that place in the value
	ErrorKind        ErrorKind
	Causes           []*ValidationError
}

// ErrorKind says what is wrong there.
type ErrorKind string

func validationError(invalid *v5.ValidationError) *ValidationError {
	e := &ValidationError{InstanceLocation: steps(invalid.InstanceLocation), ErrorKind: ErrorKind(invalid.Message)}
	for _, cause := range invalid.Causes {
		e.Causes = append(e.Causes, validationError(cause))
	}
	return e
}

// steps are those of a JSON pointer, which version 5 escapes as a part of a URL.
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, step := range steps {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps
}

// Error says what is wrong at the places that have no causes.
func (e *ValidationError) Error() string {
	if len(e.Causes) == 0 {
		return fmt.Sprintf("/%s: %s", strings.Join(e.InstanceLocation, "/"), e.ErrorKind)
	}
	var said []string
	for _, cause := range e.Causes {
		said = append(said, cause.Error())
	}
	return strings.Join(said, "; ")
}
