package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// function is called with the values of its arguments.
type function func(r *request, args []any) (any, error)

// functions are what templates can call.
var functions = map[string]function{
	"result":  of1(func(r *request, n int) (any, error) { return r.result(n) }),
	"results": of1(func(r *request, key string) (any, error) { return r.resultsOf(key), nil }),
	"first":   of1(func(r *request, re string) (any, error) { return capture(re, r.first(), "first") }),
	"last":    of1(func(r *request, re string) (any, error) { return capture(re, r.last(), "last") }),
	"toJSON":  of1(func(_ *request, v any) (any, error) { return toJSON(v) }),
	"len":     of1(func(_ *request, v any) (any, error) { return length(v) }),
	"index": func(_ *request, args []any) (any, error) {
		if len(args) != 2 {
			return nil, errors.New("index takes a value and one key")
		}
		return index(args[0], args[1])
	},
	"printf": func(_ *request, args []any) (any, error) {
		if len(args) == 0 {
			return nil, errors.New("printf takes a format")
		}
		format, ok := args[0].(string)
		if !ok {
			return nil, errors.New("the format of printf is a text")
		}
		return fmt.Sprintf(format, args[1:]...), nil
	},
}

// of1 is a function of one argument of a type.
func of1[T any](f func(*request, T) (any, error)) function {
	return func(r *request, args []any) (any, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("one argument is needed, there are %d", len(args))
		}
		arg, ok := args[0].(T)
		if _, anything := any(&arg).(*any); !ok && !anything { // null has no type
			return nil, fmt.Errorf("the argument %v is not of type %T", args[0], arg)
		}
		return f(r, arg)
	}
}

func toJSON(v any) (string, error) {
	out, err := json.Marshal(v)
	return string(out), err
}

func length(v any) (int, error) {
	switch v := v.(type) {
	case string:
		return len(v), nil
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	return 0, fmt.Errorf("%v has no length", v)
}

// holds tells whether a value counts as true: nothing, false, zero and what is
// empty do not.
func holds(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	}
	n, err := length(v)
	return err != nil || n > 0
}

// elements are those of a list, or of a map in the order of its keys.
func elements(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		all := make([]any, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, v[key])
		}
		return all
	}
	return nil
}

// index is the element of a list at a number from 0, or of a map at a key.
func index(v, key any) (any, error) {
	switch v := v.(type) {
	case []any:
		if i, ok := key.(int); ok && i >= 0 && i < len(v) {
			return v[i], nil
		}
	case map[string]any:
		if name, ok := key.(string); ok {
			if found, ok := v[name]; ok {
				return found, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no %v in %v", key, v)
}

func (r *request) result(n int) (any, error) {
	all := r.toolResults()
	i := n
	if i < 0 {
		i += len(all)
	}
	if i < 0 || i >= len(all) {
		return nil, fmt.Errorf("there is no tool result %d, the conversation has %d", n, len(all))
	}
	return parsed(all[i]), nil
}

func (r *request) resultsOf(key string) []any {
	found := []any{} // none is [] in JSON, not null
	for _, result := range r.toolResults() {
		collect(parsed(result), key, func(v any) {
			same := func(other any) bool { return fmt.Sprint(other) == fmt.Sprint(v) }
			if !slices.ContainsFunc(found, same) {
				found = append(found, v)
			}
		})
	}
	return found
}

// collect calls f for every value of key, outer before inner, siblings in the
// order of their keys.
func collect(v any, key string, f func(any)) {
	switch v := v.(type) {
	case map[string]any:
		if value, ok := v[key]; ok {
			f(value)
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			collect(v[k], key, f)
		}
	case []any:
		for _, item := range v {
			collect(item, key, f)
		}
	}
}

func parsed(result string) any {
	var v any
	if json.Unmarshal([]byte(result), &v) != nil {
		return result
	}
	return v
}

func capture(expr, in, where string) (string, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return "", err
	}
	m := re.FindStringSubmatch(in)
	switch {
	case m == nil:
		return "", fmt.Errorf("%q does not match the %s message", expr, where)
	case len(m) > 1:
		return m[1], nil
	}
	return m[0], nil
}
