package item

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DecodeJSON is [ReadJSON] of a value whose numbers can be computed with.
func DecodeJSON(raw []byte) (any, error) {
	v, err := ReadJSON(raw)
	if err == nil {
		err = checkNumbers(v)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// ReadJSON decodes exactly one JSON value, keeping numbers as written, however large.
func ReadJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("empty")
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// maxNumberBytes is more than any float64 or 64-bit integer needs in full.
const maxNumberBytes = 1100

// checkNumbers refuses numbers beyond float64. The validator computes with
// exact fractions and cannot hold those: it would panic on 1e9999999.
func checkNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil || len(v) > maxNumberBytes {
			return fmt.Errorf("number %s is out of range", Clip(v.String(), 80))
		}
		if f == 0 && strings.Trim(mantissa(v.String()), "-0.") != "" {
			return fmt.Errorf("number %s is too close to zero", Clip(v.String(), 80))
		}
	case []any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func mantissa(number string) string {
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		return number[:i]
	}
	return number
}
