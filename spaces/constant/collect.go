package constant

import (
	"maps"
	"strconv"
)

// parenthesis reads what follows "(": a value in parentheses or, in languages
// that have them, a tuple, which counts as a list.
func (f *folder) parenthesis(depth int) (value, error) {
	if f.lang.tuples && (f.peek().is(")") || f.peek().is(f.lang.spreadList)) {
		return f.list(")", depth, nil)
	}
	v, err := f.expression(depth)
	switch {
	case err != nil:
		return value{}, err
	case f.accept(")"):
		return v, nil
	case f.lang.tuples && f.peek().is(","):
		return f.tuple(v, depth, ")")
	}
	return value{}, f.computed()
}

// tuple reads the rest of a list that first begins.
func (f *folder) tuple(first value, depth int, closing string) (value, error) {
	f.at++ // the comma
	return f.list(closing, depth, []value{first})
}

// list reads the elements of a list up to closing; "" is the end. Some may have
// been read already.
func (f *folder) list(closing string, depth int, parts []value) (value, error) {
	elements := make([]any, 0, len(parts))
	for _, p := range parts {
		elements = append(elements, p.v)
	}
	for !f.closed(closing) {
		spread := f.accept(f.lang.spreadList)
		v, err := f.expression(depth)
		if err != nil {
			return value{}, err
		}
		if spread {
			list, ok := v.v.([]any)
			if !ok {
				return value{}, unknownf("spreads something else than a list")
			}
			elements = append(elements, list...)
			v.weight, v.depth = v.weight-1, v.depth-1 // without the list itself
		} else {
			elements = append(elements, v.v)
		}
		parts = append(parts, v)
		if !f.accept(",") && !f.peekClosed(closing) {
			return value{}, f.computed()
		}
	}
	if err := f.spend(1); err != nil {
		return value{}, err
	}
	return contain(elements, parts)
}

func (f *folder) closed(closing string) bool {
	if closing == "" {
		return f.peek().kind == end
	}
	return f.accept(closing)
}

func (f *folder) peekClosed(closing string) bool {
	if closing == "" {
		return f.peek().kind == end
	}
	return f.peek().is(closing)
}

// mapping reads what follows "{".
func (f *folder) mapping(depth int) (value, error) {
	entries := map[string]any{}
	var parts []value
	for !f.accept("}") {
		part, err := f.entry(entries, depth)
		if err != nil {
			return value{}, err
		}
		parts = append(parts, part)
		if !f.accept(",") && !f.peek().is("}") {
			return value{}, f.computed()
		}
	}
	if err := f.spend(1); err != nil {
		return value{}, err
	}
	return contain(entries, parts)
}

// entry reads one entry of a mapping into entries. It returns what it added.
func (f *folder) entry(entries map[string]any, depth int) (value, error) {
	if f.accept(f.lang.spreadMap) {
		v, err := f.expression(depth)
		if err != nil {
			return value{}, err
		}
		m, ok := v.v.(map[string]any)
		if !ok {
			return value{}, unknownf("spreads something else than a mapping")
		}
		maps.Copy(entries, m)
		v.weight, v.depth = v.weight-1, v.depth-1
		return v, nil
	}
	key, err := f.key(depth)
	if err != nil {
		return value{}, err
	}
	if !f.accept(":") {
		return f.withoutValue(key, entries)
	}
	k, ok := key.v.(string)
	if !ok {
		return value{}, unknownf("has a key that is no text")
	}
	v, err := f.expression(depth)
	if err != nil {
		return value{}, err
	}
	if err := f.spend(len(k)); err != nil {
		return value{}, err
	}
	entries[k] = v.v
	v.weight += len(k)
	return v, nil
}

// withoutValue reads an entry that is a name only, in languages that have such.
func (f *folder) withoutValue(key value, entries map[string]any) (value, error) {
	last, more := f.tokens[f.at-1], f.peek().is(",") || f.peek().is("}")
	switch {
	case f.lang.bareKeys && last.kind == name && more:
		v, err := f.name(last)
		entries[last.text] = v.v
		v.weight += key.weight
		return v, err
	case f.lang.bareKeys && f.peek().is("("):
		return value{}, unknownf("has a method")
	case more:
		return value{}, unknownf("is a set, which JSON has no form for")
	}
	return value{}, f.computed()
}

// key reads the key of an entry.
func (f *folder) key(depth int) (value, error) {
	if !f.lang.bareKeys {
		return f.expression(depth)
	}
	switch t := f.peek(); {
	case t.word("__proto__"), t.kind == text && t.text[1:len(t.text)-1] == "__proto__":
		return value{}, unknownf("sets a prototype")
	case t.kind == name:
		f.at++
		return value{v: t.text}, nil
	case f.accept("["):
		v, err := f.expression(depth + 1)
		if err == nil && !f.accept("]") {
			err = f.computed()
		}
		return v, err
	}
	v, err := f.expression(depth)
	if n, whole := v.v.(int64); whole {
		v.v = strconv.FormatInt(n, 10)
	}
	return v, err
}
