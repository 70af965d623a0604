package constant

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

// folder computes the value of an expression.
type folder struct {
	*scope
	*expression
}

// fold returns the value of an expression.
func (s *scope) fold(l *language, tokens []token) (value, error) {
	e, tree, err := l.parse(tokens)
	if err != nil {
		return value{}, err
	}
	return folder{s, e}.value(tree)
}

func (f folder) value(e syntax.Expr) (value, error) {
	switch e := e.(type) {
	case *syntax.Literal:
		return f.leafValue(e)
	case *syntax.ParenExpr:
		return f.value(e.X)
	case *syntax.ListExpr:
		return f.list(e.List)
	case *syntax.TupleExpr:
		if f.tuples {
			return f.list(e.List)
		}
	case *syntax.DictExpr:
		return f.mapping(e.List)
	case *syntax.BinaryExpr:
		if e.Op == syntax.PLUS {
			return f.sum(e)
		}
	}
	return value{}, unknownf("uses , where only constants are read")
}

func (f folder) leafValue(l *syntax.Literal) (value, error) {
	i, err := strconv.Atoi(strings.Trim(l.Raw, `"#`))
	if err != nil {
		return value{}, unknownf("spreads something where only constants are read")
	}
	v := value{v: f.leaves[i], weight: 1}
	switch leaf := v.v.(type) {
	case string:
		v.weight += len(leaf)
	case reference:
		word, ok := f.words[string(leaf)]
		if !ok {
			return f.look(string(leaf))
		}
		v.v = word
	}
	return v, f.spend(v.weight)
}

func (f folder) list(list []syntax.Expr) (value, error) {
	elements, parts := make([]any, 0, len(list)), make([]value, 0, len(list))
	for _, e := range list {
		b, spread := e.(*syntax.BinaryExpr)
		if spread = spread && isMark(b.X); spread {
			e = b.Y
		}
		v, err := f.value(e)
		if err != nil {
			return value{}, err
		}
		if inner, ok := v.v.([]any); ok && spread {
			elements = append(elements, inner...)
			v.weight, v.depth = v.weight-1, v.depth-1 // without the list itself
		} else if spread {
			return value{}, unknownf("spreads something else than a list")
		} else {
			elements = append(elements, v.v)
		}
		parts = append(parts, v)
	}
	return f.contain(elements, parts)
}

func isMark(e syntax.Expr) bool {
	l, ok := e.(*syntax.Literal)
	return ok && l.Raw == spreadMark
}

func (f folder) mapping(list []syntax.Expr) (value, error) {
	entries, parts := make(map[string]any, len(list)), make([]value, 0, len(list))
	for _, e := range list {
		e := e.(*syntax.DictEntry)
		if isMark(e.Key) {
			v, err := f.value(e.Value)
			m, ok := v.v.(map[string]any)
			if err == nil && !ok {
				err = unknownf("spreads something else than a mapping")
			}
			if err != nil {
				return value{}, err
			}
			maps.Copy(entries, m)
			v.weight, v.depth = v.weight-1, v.depth-1
			parts = append(parts, v)
			continue
		}
		key, err := f.key(e.Key)
		if err != nil {
			return value{}, err
		}
		v, err := f.value(e.Value)
		if err != nil {
			return value{}, err
		}
		entries[key] = v.v
		v.weight += len(key)
		parts = append(parts, v)
	}
	return f.contain(entries, parts)
}

func (f folder) key(e syntax.Expr) (string, error) {
	v, err := f.value(e)
	if n, ok := v.v.(int64); ok && f.numKeys {
		return strconv.FormatInt(n, 10), err
	}
	key, ok := v.v.(string)
	if err == nil && !ok {
		err = unknownf("has a key that is no text")
	}
	return key, err
}

// sum joins texts, or lists. It does so at once: joined one by one, many short
// texts behind a long one would be copied for hours.
func (f folder) sum(e syntax.Expr) (value, error) {
	var terms []syntax.Expr
	for b, ok := e.(*syntax.BinaryExpr); ok && b.Op == syntax.PLUS; b, ok = e.(*syntax.BinaryExpr) {
		terms, e = append(terms, b.Y), b.X
	}
	terms = append(terms, e)
	var text strings.Builder
	list, parts := []any{}, []value{}
	for _, term := range slices.Backward(terms) {
		v, err := f.value(term)
		if err != nil {
			return value{}, err
		}
		switch v := v.v.(type) {
		case string:
			text.WriteString(v)
		case []any:
			list = append(list, v...)
		}
		if parts = append(parts, v); reflect.TypeOf(v.v) != reflect.TypeOf(parts[0].v) {
			return value{}, unknownf("adds values of different types")
		}
	}
	whole, err := f.contain(list, parts)
	switch parts[0].v.(type) {
	case string:
		return value{v: text.String(), weight: whole.weight}, err
	case []any:
		if f.addLists {
			return whole, err
		}
	}
	return value{}, unknownf("adds something else than texts or lists")
}
