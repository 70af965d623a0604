package item

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// The types of inputs and outputs, named as in JSON Schema.
const (
	TypeString  = "string"
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
	TypeArray   = "array"
	TypeObject  = "object"
)

// TypeFile is the type of an input that is the path of a file of the project: a string
// whose file the result depends on, see [Input.File].
const TypeFile = "file"

// Types lists the types of inputs and outputs.
func Types() []string {
	return []string{TypeString, TypeInteger, TypeNumber, TypeBoolean, TypeArray, TypeObject}
}

// ParseType reads the name of a type. Python's names are accepted for files
// that were written for the Python runtime.
func ParseType(s string) (string, error) {
	switch name := strings.ToLower(strings.TrimSpace(s)); name {
	case TypeString, TypeInteger, TypeNumber, TypeBoolean, TypeArray, TypeObject:
		return name, nil
	case "str":
		return TypeString, nil
	case "int":
		return TypeInteger, nil
	case "float":
		return TypeNumber, nil
	case "bool":
		return TypeBoolean, nil
	case "list":
		return TypeArray, nil
	case "dict":
		return TypeObject, nil
	}
	return "", fmt.Errorf("type %q is unknown; use one of %s", Shown(s), strings.Join(Types(), ", "))
}

// ParseValue reads a value of the given type from text, as it stands in an
// attribute or on a command line: string as it is, array and object as JSON.
// It returns string, int64, float64, bool, []any or map[string]any.
func ParseValue(typ, text string) (any, error) {
	trimmed := strings.TrimSpace(text)
	switch typ {
	case TypeString:
		return text, nil
	case TypeInteger:
		if n, err := strconv.ParseInt(trimmed, 10, 64); err == nil {
			return n, nil
		}
		return nil, fmt.Errorf("%q is not an integer", Shown(text))
	case TypeNumber:
		f, err := strconv.ParseFloat(trimmed, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is not a number", Shown(text))
		}
		return f, nil
	case TypeBoolean:
		switch strings.ToLower(trimmed) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is not true or false", Shown(text))
	case TypeArray:
		v, err := parseJSON(trimmed)
		if list, ok := v.([]any); ok && err == nil {
			return list, nil
		}
		return nil, notJSON("array", err)
	case TypeObject:
		v, err := parseJSON(trimmed)
		if object, ok := v.(map[string]any); ok && err == nil {
			return object, nil
		}
		return nil, notJSON("object", err)
	}
	return nil, fmt.Errorf("type %q is unknown; use one of %s", Shown(typ), strings.Join(Types(), ", "))
}

// notJSON says where a text is no JSON, and not what stands there: it may be a stranger's. Err
// is nil where it is JSON of another type.
func notJSON(what string, err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return fmt.Errorf("it is JSON, but not an %s", what)
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not a JSON %s: %w, at byte %d", what, err, syntax.Offset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it is not a JSON %s: it ends too early", what)
	}
	return fmt.Errorf("it is not a JSON %s: %w", what, err)
}

// parseJSON reads text as exactly one JSON value.
func parseJSON(text string) (any, error) {
	v, err := ReadJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	return PlainNumbers(v)
}

// PlainNumbers replaces the [json.Number] values within a decoded JSON value:
// whole numbers become int64 as long as they fit, all others float64. A number
// beyond the range of float64 is an error. It changes v in place.
func PlainNumbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return plainNumber(v)
	case []any:
		for i := range v {
			if v[i], err = PlainNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if v[key], err = PlainNumbers(v[key]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// plainNumber reads 3, 3.0 and 3e0 as the same int64.
func plainNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is out of range", Shown(n.String()))
	}
	// Whole float64 values are exact up to 2^53; beyond, int64 would feign precision.
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f), nil
	}
	return f, nil
}

// Text writes a value for a reader, a model most of all: a string as it is,
// anything else as compact JSON.
func Text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // no browser reads it
	if enc.Encode(value) != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// Clip shortens text from outside to at most n bytes, not counting the mark that says
// so. Shortened text loses bytes that are no UTF-8.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
