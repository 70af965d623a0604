package expr

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxDepth bounds how deep conditions are nested.
const maxDepth = 64

// ParseCondition reads a condition from decoded YAML or JSON; nil is the
// condition that is always true. An error is an [*Error] with the place within v.
func ParseCondition(v any) (Condition, error) {
	if v == nil {
		return Condition{}, nil
	}
	n, err := parseNode(v, "", 0)
	return Condition{node: n}, err
}

func parseNode(v any, at string, depth int) (node, error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, errorAt(at, "want a condition: path, op and value, or one of any, all, not")
	}
	if depth > maxDepth {
		return nil, errorAt(at, "conditions are nested more than %d deep", maxDepth)
	}
	for _, combine := range []string{"any", "all", "not"} {
		inner, ok := fields[combine]
		if !ok {
			continue
		}
		if len(fields) > 1 {
			return nil, errorAt(at, "%q stands alone in its condition; found %s", combine, keys(fields))
		}
		return parseCombined(combine, inner, below(at, combine), depth+1)
	}
	return parseTest(fields, at)
}

func parseCombined(combine string, v any, at string, depth int) (node, error) {
	if combine == "not" {
		inner, err := parseNode(v, at, depth)
		return negation{inner}, err
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, errorAt(at, "want a list of conditions")
	}
	parts := make([]node, len(list))
	for i, element := range list {
		var err error
		if parts[i], err = parseNode(element, at+"["+strconv.Itoa(i)+"]", depth); err != nil {
			return nil, err
		}
	}
	if combine == "any" {
		return anyOf(parts), nil
	}
	return all(parts), nil
}

func parseTest(fields map[string]any, at string) (node, error) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != "path" && key != "op" && key != "value" {
			return nil, errorAt(below(at, key), "unknown key; a condition has path, op and value, or one of any, all, not")
		}
	}
	written, ok := fields["path"].(string)
	if !ok {
		return nil, errorAt(below(at, "path"), "missing; want the path of the data to look at, such as cost.turns")
	}
	p, ok := parsePath(written)
	if !ok {
		return nil, errorAt(below(at, "path"), "%q is no path; want names joined by dots, such as cost.turns", written)
	}
	op, ok := fields["op"].(string)
	if !ok {
		return nil, errorAt(below(at, "op"), "missing; want one of %s", strings.Join(Ops(), ", "))
	}
	value, given := fields["value"]
	if !given && op != opExists {
		if !slices.Contains(Ops(), op) {
			return nil, unknownOp(op, at)
		}
		return nil, errorAt(below(at, "value"), "missing; %s needs a value to compare with", op)
	}
	return newTest(p, op, operand{value: value}, at)
}

// newTest checks what an operator asks of its value.
func newTest(p path, op string, right operand, at string) (node, error) {
	t := test{path: p, op: op, right: right}
	fixed := right.path == nil
	switch op {
	case opEq, opNe, opContains:
	case opGt, opGte, opLt, opLte:
		if kind := typeName(right.value); fixed && kind != "number" && kind != "string" {
			return nil, errorAt(below(at, "value"), "%s needs a number or text", op)
		}
	case opIn:
		if kind := typeName(right.value); fixed && kind != "array" && kind != "string" {
			return nil, errorAt(below(at, "value"), "in needs a list or text")
		}
	case opRegex:
		expression, ok := right.value.(string)
		if !ok {
			return nil, errorAt(below(at, "value"), "regex needs a regular expression as text")
		}
		re, err := regexp.Compile(expression)
		if err != nil {
			return nil, errorAt(below(at, "value"), "%v", err)
		}
		t.re = re
	case opExists:
		if _, ok := right.value.(bool); !ok && right.value != nil {
			return nil, errorAt(below(at, "value"), "exists takes true, false or no value")
		}
	default:
		return nil, unknownOp(op, at)
	}
	return t, nil
}

func unknownOp(op, at string) error {
	return errorAt(below(at, "op"), "%q is unknown; want one of %s", op, strings.Join(Ops(), ", "))
}

// FromXML reads the conditions of a hook in a directive: all of them hold. The
// value of in may be a list as JSON. The place in an error is the number of the
// condition, from 1.
func FromXML(conditions []item.Condition) (Condition, error) {
	parts := make([]node, len(conditions))
	for i, c := range conditions {
		at := "condition " + strconv.Itoa(i+1)
		fields := map[string]any{"path": c.Path, "op": c.Op}
		if c.Value != nil {
			value, err := xmlValue(c)
			if err != nil {
				return Condition{}, errorAt(at, "%v", err)
			}
			fields["value"] = value
		}
		n, err := parseTest(fields, at)
		if err != nil {
			return Condition{}, err
		}
		parts[i] = n
	}
	switch len(parts) {
	case 0:
		return Condition{}, nil
	case 1:
		return Condition{node: parts[0]}, nil
	}
	return Condition{node: all(parts)}, nil
}

// xmlValue is the value of an attribute, which cannot be a list unless its text
// is one.
func xmlValue(c item.Condition) (any, error) {
	text, ok := c.Value.(string)
	if !ok || c.Op != opIn || !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return c.Value, nil
	}
	return item.ParseValue(item.TypeArray, text)
}

func below(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func keys(m map[string]any) string {
	return fmt.Sprintf("%q", slices.Sorted(maps.Keys(m)))
}
