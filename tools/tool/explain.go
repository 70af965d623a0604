package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxProblems bounds one answer; a model corrects a few things at a time.
const maxProblems = 10

// explain puts the leaves of a validation error into plain words, each once,
// in the order of their place in the arguments.
func explain(schema, args any, invalid *jsonschema.ValidationError) []string {
	problems := leaves(schema, args, invalid)
	slices.Sort(problems)
	problems = slices.Compact(problems)
	if len(problems) > maxProblems {
		more := len(problems) - maxProblems
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more problems", more))
	}
	return problems
}

func leaves(schema, args any, e *jsonschema.ValidationError) []string {
	keyword := lastSegment(e.KeywordLocation)
	if keyword == "anyOf" || keyword == "oneOf" {
		return []string{alternatives(schema, args, e)}
	}
	if len(e.Causes) == 0 {
		return describe(schema, args, e)
	}
	var all []string
	for _, c := range e.Causes {
		all = append(all, leaves(schema, args, c)...)
	}
	return all
}

// alternatives says what each branch of an anyOf or oneOf misses.
func alternatives(schema, args any, e *jsonschema.ValidationError) string {
	place := at(e.InstanceLocation)
	if len(e.Causes) == 0 {
		return subject(place) + " must fit exactly one of the allowed forms, not several"
	}
	ways := make([]string, len(e.Causes))
	for i, c := range e.Causes {
		ways[i] = fmt.Sprintf("(%d) %s", i+1, strings.Join(explain(schema, args, c), ", "))
	}
	return subject(place) + " must fit one of the allowed forms: " + strings.Join(ways, " or ")
}

func describe(schema, args any, e *jsonschema.ValidationError) []string {
	place := at(e.InstanceLocation)
	_, pointer, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	parent, keyword := splitPointer(pointer)
	node, _ := lookup(schema, parent).(map[string]any)
	value := lookup(args, e.InstanceLocation)
	object, _ := value.(map[string]any)

	switch keyword {
	case "required":
		return missing(node, object, place)
	case "additionalProperties", "unevaluatedProperties":
		if object != nil && node[keyword] == false {
			return unknown(node, object, place)
		}
	case "type":
		return []string{fmt.Sprintf("%s must be %s, got %s", subject(place), orList(node["type"]), item.TypeName(value))}
	case "enum":
		return []string{fmt.Sprintf("%s must be one of %s, got %s", subject(place), values(node["enum"]), show(value))}
	}
	return []string{subject(place) + " " + e.Message}
}

func missing(node, object map[string]any, place string) []string {
	var problems []string
	required, _ := node["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		if _, ok := object[name]; !ok {
			problems = append(problems, fmt.Sprintf("missing property %q%s%s", name, within(place), saidOf(node, name)))
		}
	}
	return problems
}

// saidOf is what a schema says of a property.
func saidOf(node map[string]any, name string) string {
	properties, _ := node["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	said, _ := property["description"].(string)
	if among, _ := property["enum"].([]any); said == "" && len(among) > 0 {
		said = "one of " + values(among)
	}
	if said == "" {
		return ""
	}
	return " (" + clip(said) + ")"
}

func unknown(node, object map[string]any, place string) []string {
	declared, _ := node["properties"].(map[string]any)
	patterns, _ := node["patternProperties"].(map[string]any)
	names := make([]string, 0, len(declared))
	for name := range declared {
		names = append(names, name)
	}
	slices.Sort(names)

	var problems []string
	for name := range object {
		if _, ok := declared[name]; ok || len(patterns) > 0 && matchesAny(patterns, name) {
			continue
		}
		text := fmt.Sprintf("unknown property %q%s", clip(name), within(place))
		switch near := Nearest(name, names); {
		case near != "":
			text += fmt.Sprintf(", did you mean %q", near)
		case len(names) == 0:
			text += ", none is accepted"
		default:
			text += ", valid are " + quoteAll(names)
		}
		problems = append(problems, text)
	}
	return problems
}

// at turns a JSON pointer into the form people write: changes[0].line_id.
func at(pointer string) string {
	var b strings.Builder
	for _, seg := range item.PointerKeys(pointer) {
		if _, err := strconv.Atoi(seg); err == nil {
			b.WriteString("[" + seg + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(clip(seg))
	}
	return b.String()
}

func subject(place string) string {
	if place == "" {
		return "the arguments"
	}
	return strconv.Quote(place)
}

func within(place string) string {
	if place == "" {
		return ""
	}
	return " in " + strconv.Quote(place)
}

func orList(types any) string {
	list, ok := types.([]any)
	if !ok {
		return fmt.Sprint(types)
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = fmt.Sprint(t)
	}
	return strings.Join(names, " or ")
}

func values(enum any) string {
	list, _ := enum.([]any)
	shown := make([]string, len(list))
	for i, v := range list {
		shown[i] = show(v)
	}
	return strings.Join(shown, ", ")
}

func show(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return item.TypeName(v)
	}
	return clip(string(raw))
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return strings.Join(quoted, ", ")
}
