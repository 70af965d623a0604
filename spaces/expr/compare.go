package expr

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
)

// equal reports whether two values are the same; numbers are compared by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		other, ok := b.(bool)
		return ok && a == other
	case string:
		other, ok := b.(string)
		return ok && a == other
	case []any:
		other, ok := b.([]any)
		return ok && equalLists(a, other)
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && equalMaps(a, other)
	}
	c, ok := compare(a, b)
	return ok && c == 0
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !equal(value, other) {
			return false
		}
	}
	return true
}

// sameType reports whether two values can be told equal or different.
func sameType(a, b any) bool {
	kind := typeName(a)
	return kind != "" && kind == typeName(b)
}

// typeName is the JSON type of data, empty when it is none.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	if _, ok := number(v); ok {
		return "number"
	}
	return ""
}

// compare orders two numbers or two strings; it returns false for anything else.
func compare(a, b any) (int, bool) {
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	}
	// Large whole numbers differ where the nearest float64 does not.
	if x, ok := whole(a); ok {
		if y, ok := whole(b); ok {
			return cmp.Compare(x, y), true
		}
	}
	x, xok := number(a)
	y, yok := number(b)
	if !xok || !yok || math.IsNaN(x) || math.IsNaN(y) { // NaN is in no order
		return 0, false
	}
	return cmp.Compare(x, y), true
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case json.Number:
		i, err := v.Int64()
		return i, err == nil
	}
	return 0, false
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

// holds reports whether outer is a list with inner in it, text with the text
// inner in it, or a map with the key inner.
func holds(outer, inner any) bool {
	switch outer := outer.(type) {
	case []any:
		for _, element := range outer {
			if equal(element, inner) {
				return true
			}
		}
	case string:
		text, ok := inner.(string)
		return ok && strings.Contains(outer, text)
	case map[string]any:
		key, ok := inner.(string)
		_, has := outer[key]
		return ok && has
	}
	return false
}
