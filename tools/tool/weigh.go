package tool

import (
	"errors"
	"strings"
)

// A check may look at parts of a value by parts of a schema maxVisits times, and
// perPart times more for each part of the value. A large call to a large tool takes a
// few thousand.
const (
	maxVisits = 100_000
	perPart   = 16
)

// maxInPlace is how many schemas may follow each other for one value.
const maxInPlace = 500

// errHeavy says that a check would take too long. A schema comes from an item, and a
// few lines that refer to each other can ask for more comparisons than there is time.
var errHeavy = errors.New("it refers to itself so often that checking anything against it takes too long")

// scale weighs a check before it is made: it counts what the validator would visit,
// and compares nothing.
type scale struct {
	root    any
	named   map[string]any // by $id and $anchor
	left    int            // visits
	inPlace bool           // do not go down into the value
}

// weigh says whether a value can be checked against a schema in reasonable time.
func weigh(schema, value any) error {
	s := &scale{root: schema, named: namedIn(schema), left: maxVisits + perPart*parts(value)}
	return s.visit(schema, value, 0)
}

// weighLoops says the same of the search for schemas that only refer to each other,
// which begins at each part of a schema.
func weighLoops(schema any) error {
	s := &scale{root: schema, named: namedIn(schema), left: maxVisits + perPart*parts(schema), inPlace: true}
	return each(schema, func(part map[string]any) error { return s.visit(part, nil, 0) })
}

// parts counts the values in a value.
func parts(value any) int {
	n := 1
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			n += parts(v)
		}
	case map[string]any:
		for _, v := range value {
			n += parts(v)
		}
	}
	return n
}

// each calls f for every object in a value.
func each(value any, f func(map[string]any) error) error {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			if err := each(v, f); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := f(value); err != nil {
			return err
		}
		for _, v := range value {
			if err := each(v, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func namedIn(schema any) map[string]any {
	named := map[string]any{}
	_ = each(schema, func(part map[string]any) error {
		for _, key := range []string{"$id", "$anchor", "$dynamicAnchor", "id"} {
			if name, ok := part[key].(string); ok {
				named[strings.TrimPrefix(name, "#")] = part
			}
		}
		return nil
	})
	return named
}

func (s *scale) visit(schema, value any, depth int) error {
	if s.left--; s.left < 0 || depth > maxInPlace {
		return errHeavy
	}
	part, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if list, ok := part["enum"].([]any); ok {
		s.left -= len(list)
	}
	for _, next := range s.here(part) {
		if err := s.visit(next, value, depth+1); err != nil {
			return err
		}
	}
	if s.inPlace {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		return s.members(part, value)
	case []any:
		return s.elements(part, value)
	}
	return nil
}

// here are the schemas that hold for the same value.
func (s *scale) here(part map[string]any) []any {
	var next []any
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := part[key].([]any)
		next = append(next, list...)
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		if sub, ok := part[key]; ok {
			next = append(next, sub)
		}
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		subs, _ := part[key].(map[string]any)
		for _, sub := range subs {
			next = append(next, sub)
		}
	}
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := part[key].(string); ok {
			next = append(next, s.resolve(ref))
		}
	}
	return next
}

// resolve is what a reference leads to; one that is not found is taken for the whole.
func (s *scale) resolve(ref string) any {
	base, fragment, _ := strings.Cut(ref, "#")
	from := s.root
	if known, ok := s.named[base]; ok && base != "" {
		from = known
	}
	if known, ok := s.named[fragment]; ok && fragment != "" {
		return known
	}
	if found := lookup(from, fragment); found != nil {
		return found
	}
	return s.root
}

// members are visited by every schema that could hold for them.
func (s *scale) members(part, value map[string]any) error {
	properties, _ := part["properties"].(map[string]any)
	patterns, _ := part["patternProperties"].(map[string]any)
	for name, member := range value {
		var by []any
		if sub, ok := properties[name]; ok {
			by = append(by, sub)
		}
		for _, sub := range patterns {
			by = append(by, sub)
		}
		for _, key := range []string{"additionalProperties", "unevaluatedProperties", "propertyNames"} {
			if sub, ok := part[key].(map[string]any); ok {
				by = append(by, sub)
			}
		}
		for _, sub := range by {
			if err := s.visit(sub, member, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scale) elements(part map[string]any, value []any) error {
	if part["uniqueItems"] == true { // each is compared with each
		if len(value) > maxVisits {
			return errHeavy
		}
		s.left -= len(value) * len(value) / perPart // a comparison takes less than a visit
	}
	var all []any
	for _, key := range []string{"items", "additionalItems", "contains", "unevaluatedItems"} {
		if sub, ok := part[key].(map[string]any); ok {
			all = append(all, sub)
		}
	}
	for i, element := range value {
		by := all
		for _, key := range []string{"items", "prefixItems"} {
			if list, ok := part[key].([]any); ok && i < len(list) {
				by = append(by[:len(by):len(by)], list[i])
			}
		}
		for _, sub := range by {
			if err := s.visit(sub, element, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
