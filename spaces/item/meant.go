package item

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Meant is a value as the schema wants it, where it can mean one thing only: "3" is
// a number where one is wanted, "true" a boolean, a text that is a JSON list or
// object is that, one value stands for a list of one and a list of one for its value, an
// object of texts for the list of its "name:text", and an object of one number for the
// number. Capitals do not matter where there are values to choose from. Null is an
// argument left out. Anything else stays as it is, for the schema to refuse. Numbers are
// json.Number, as [DecodeJSON] reads them.
func Meant(schema, value any) (any, bool) {
	node, ok := schema.(map[string]any)
	if !ok {
		return value, false
	}
	wanted, _ := node["type"].(string)
	changed := false
	if read, ok := asType(wanted, node, value); ok {
		value, changed = read, true
	}
	switch v := value.(type) {
	case map[string]any:
		return v, meantMembers(node, v) || changed
	case []any:
		for i, element := range v {
			if read, ok := Meant(node["items"], element); ok {
				v[i], changed = read, true
			}
		}
		return v, changed
	}
	return value, changed
}

func meantMembers(node map[string]any, members map[string]any) (changed bool) {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for name, schema := range properties {
		value, given := members[name]
		if !given {
			continue
		}
		if value == nil && !slices.Contains(required, any(name)) && typed(schema) {
			delete(members, name)
			changed = true
			continue
		}
		if read, ok := Meant(schema, value); ok {
			members[name], changed = read, true
		}
	}
	if others, ok := node["additionalProperties"].(map[string]any); ok {
		for name, value := range members {
			if properties[name] == nil {
				if read, ok := Meant(others, value); ok {
					members[name], changed = read, true
				}
			}
		}
	}
	return changed
}

// typed reports whether a schema wants one type, which null is not.
func typed(schema any) bool {
	node, _ := schema.(map[string]any)
	wanted, one := node["type"].(string)
	return one && wanted != "null"
}

// asType reads a value of another type as the wanted one.
func asType(wanted string, node map[string]any, value any) (any, bool) {
	switch v := value.(type) {
	case string:
		if wanted == "string" {
			return choice(node, v)
		}
		return textAs(wanted, node, v)
	case json.Number:
		switch wanted {
		case "string":
			return v.String(), true
		case "integer":
			whole, isWhole := strings.CutSuffix(v.String(), ".0")
			return json.Number(whole), isWhole
		case "array":
			return oneOf(node, v)
		}
	case map[string]any:
		switch wanted {
		case "array":
			if list, ok := pairs(node, v); ok {
				return list, true
			}
			return oneOf(node, v)
		case "integer", "number":
			return onlyNumber(v)
		}
	case bool:
		if wanted == "array" {
			return oneOf(node, v)
		}
	case []any:
		return onlyElement(wanted, v)
	}
	return nil, false
}

// onlyElement is the one element of a list, where no list is wanted.
func onlyElement(wanted string, list []any) (any, bool) {
	if wanted == "" || wanted == "array" || len(list) != 1 || !isOf(wanted, list[0]) {
		return nil, false
	}
	return list[0], true
}

// pairs is an object of texts as a list of "name:text", where texts are wanted.
func pairs(node map[string]any, object map[string]any) (any, bool) {
	items, _ := node["items"].(map[string]any)
	if items["type"] != "string" {
		return nil, false
	}
	list := make([]any, 0, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		text, ok := object[name].(string)
		if !ok {
			return nil, false
		}
		list = append(list, name+":"+text)
	}
	return list, true
}

// onlyNumber is the one number of an object that says nothing else but yes.
func onlyNumber(object map[string]any) (any, bool) {
	var numbers []any
	for _, value := range object {
		switch v := value.(type) {
		case json.Number:
			numbers = append(numbers, v)
		case bool:
			if !v {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	if len(numbers) != 1 {
		return nil, false
	}
	return numbers[0], true
}

// choice is the value among those to choose from that is written like a text but for
// capitals.
func choice(node map[string]any, text string) (any, bool) {
	choices, _ := node["enum"].([]any)
	if slices.Contains(choices, any(text)) {
		return nil, false
	}
	same := slices.DeleteFunc(slices.Clone(choices), func(c any) bool {
		known, ok := c.(string)
		return !ok || !strings.EqualFold(known, text)
	})
	if len(same) != 1 {
		return nil, false
	}
	return same[0], true
}

// textAs reads a text as the wanted type.
func textAs(wanted string, node map[string]any, text string) (any, bool) {
	trimmed := strings.TrimSpace(text)
	switch wanted {
	case "integer", "number", "boolean", "object":
		read, err := DecodeJSON([]byte(trimmed))
		if err != nil || !isOf(wanted, read) {
			return nil, false
		}
		return read, true
	case "array":
		if list, err := DecodeJSON([]byte(trimmed)); err == nil && isOf(wanted, list) {
			return list, true
		}
		return oneOf(node, text)
	}
	return nil, false
}

// isOf reports whether a decoded value is of the wanted type.
func isOf(wanted string, v any) bool {
	is := TypeName(v)
	return is == wanted || wanted == "number" && is == "integer"
}

// oneOf is a list of one value, where lists of such values are wanted. Where lists may hold
// anything, a text that does not look like a list itself is one of its own.
func oneOf(node map[string]any, value any) (any, bool) {
	items, restricted := node["items"].(map[string]any)
	if text, isText := value.(string); isText && !restricted && node["items"] == nil {
		return []any{text}, !strings.HasPrefix(strings.TrimSpace(text), "[")
	}
	element, _ := Meant(items, value)
	wanted, _ := items["type"].(string)
	if !isOf(wanted, element) {
		return nil, false
	}
	return []any{element}, true
}

// TypeName is the type of a decoded value, as schemas call it.
func TypeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return "array"
	default:
		return "object"
	}
}
