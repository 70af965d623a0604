package tool

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Object is a JSON object kept as it was written, for parameters that somebody
// else's schema describes. The zero value stands for {}. In schemas it is an
// object with any properties.
type Object json.RawMessage

// MarshalJSON writes the object as it was read.
func (o Object) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON keeps the bytes of an object and refuses any other value.
func (o *Object) UnmarshalJSON(b []byte) error {
	trimmed := bytes.TrimSpace(b)
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return errNoObject
	}
	*o = bytes.Clone(trimmed)
	return nil
}

// Raw is the object as JSON, never empty.
func (o Object) Raw() json.RawMessage {
	if len(o) == 0 {
		return json.RawMessage("{}")
	}
	return json.RawMessage(o)
}

// Map decodes the object; numbers become int64 where they are whole and fit,
// and float64 otherwise.
func (o Object) Map() (map[string]any, error) {
	v, err := item.DecodeJSON(o.Raw())
	if err != nil {
		return nil, err
	}
	if v, err = item.PlainNumbers(v); err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	return m, nil
}

var errNoObject = errors.New("not a JSON object")

// ObjectOf writes v, which must marshal to a JSON object, as an Object.
func ObjectOf(v any) (Object, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var o Object
	if err := o.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return o, nil
}
