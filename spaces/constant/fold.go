package constant

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

// folder computes the value of a name's expression.
type folder struct {
	*outline
	user *fact
}

// fold returns the value of an expression that stands deep within others.
func (o *outline) fold(f *fact, deep int) (any, error) {
	written, err := o.write(f)
	if err != nil {
		return nil, err
	}
	tree, err := new(syntax.FileOptions).ParseExpr("", "("+written+")", 0)
	if refused := (syntax.Error{}); errors.As(err, &refused) {
		return nil, unknownf("is not written as a constant: %s", shorten(refused.Msg))
	} else if err != nil {
		return nil, err
	}
	return folder{o, f}.value(tree, deep)
}

func (f folder) value(e syntax.Expr, deep int) (any, error) {
	if deep > maxDepth {
		return nil, errTooDeep
	}
	switch e := e.(type) {
	case *syntax.Literal:
		return f.literal(e.Value, 1)
	case *syntax.Ident:
		if word, ok := f.words[e.Name]; ok {
			return word, nil
		}
		return f.look(e.Name, f.user, deep)
	case *syntax.ParenExpr:
		return f.value(e.X, deep)
	case *syntax.ListExpr:
		return f.list(e.List, deep)
	case *syntax.TupleExpr:
		if !f.objects {
			return f.list(e.List, deep)
		}
	case *syntax.DictExpr:
		return f.mapping(e.List, deep)
	case *syntax.UnaryExpr:
		if n, ok := e.X.(*syntax.Literal); ok && e.Op == syntax.MINUS {
			return f.literal(n.Value, -1)
		} else if ok && e.Op == syntax.PLUS {
			return f.literal(n.Value, 1)
		}
	case *syntax.BinaryExpr:
		if e.Op == syntax.PLUS {
			return f.sum(e, deep)
		}
	}
	return nil, unknownf("%s", refusal(e))
}

// refusal explains why an expression is no constant.
func refusal(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.CallExpr:
		if fn, ok := e.Fn.(*syntax.Ident); ok {
			return "calls " + shorten(fn.Name) + "()"
		}
		return "makes a call"
	case *syntax.DotExpr, *syntax.IndexExpr, *syntax.SliceExpr:
		return "takes a part of a value"
	case *syntax.CondExpr:
		return "depends on a condition"
	case *syntax.Comprehension:
		return "is built by a comprehension"
	case *syntax.LambdaExpr:
		return "is a function"
	case *syntax.UnaryExpr:
		return "uses the operator " + e.Op.String()
	case *syntax.BinaryExpr:
		return "uses the operator " + e.Op.String()
	}
	return "is not written as a constant"
}

// literal is a text or a number with its sign.
func (f folder) literal(v any, sign int64) (any, error) {
	if big, ok := v.(*big.Int); ok {
		v, _ = big.Float64()
	}
	switch n := v.(type) {
	case string:
		if sign > 0 {
			return n, nil
		}
	case int64:
		if !f.objects || n <= 1<<53 {
			return sign * n, nil
		}
		return float64(sign) * float64(n), nil // as all numbers of JavaScript
	case float64:
		if f.objects && n == math.Trunc(n) && n <= 1<<53 {
			return sign * int64(n), nil
		} else if !math.IsInf(n, 0) {
			return float64(sign) * n, nil
		}
	}
	return nil, unknownf("has a number that is out of range")
}

func (f folder) list(list []syntax.Expr, deep int) (any, error) {
	elements := make([]any, 0, len(list))
	for _, e := range list {
		spread, isSpread := e.(*syntax.BinaryExpr)
		if isSpread = isSpread && isMark(spread.X); isSpread {
			e = spread.Y
		}
		v, err := f.value(e, deep+1)
		if err != nil {
			return nil, err
		}
		switch inner, isList := v.([]any); {
		case !isSpread:
			elements = append(elements, v)
		case isList:
			elements = append(elements, inner...)
		default:
			return nil, unknownf("spreads something else than a list")
		}
	}
	return elements, nil
}

// isMark says whether something marks what is spread.
func isMark(e syntax.Expr) bool {
	l, ok := e.(*syntax.Literal)
	return ok && l.Token == syntax.BYTES
}

func (f folder) mapping(list []syntax.Expr, deep int) (any, error) {
	entries := make(map[string]any, len(list))
	for _, e := range list {
		e := e.(*syntax.DictEntry)
		v, err := f.value(e.Value, deep+1)
		if err != nil {
			return nil, err
		}
		if isMark(e.Key) {
			inner, ok := v.(map[string]any)
			if !ok {
				return nil, unknownf("spreads something else than a mapping")
			}
			maps.Copy(entries, inner)
			continue
		}
		key, err := f.value(e.Key, deep+1)
		if n, ok := key.(int64); ok && f.objects {
			key = strconv.FormatInt(n, 10)
		}
		name, ok := key.(string)
		if err == nil && !ok {
			err = unknownf("has a key that is no text")
		}
		if err != nil {
			return nil, err
		}
		entries[name] = v
	}
	return entries, nil
}

// sum joins texts, or lists. It does so at once: joined one by one, many short
// texts behind a long one would be copied for hours.
func (f folder) sum(e syntax.Expr, deep int) (any, error) {
	var terms []syntax.Expr
	for b, ok := e.(*syntax.BinaryExpr); ok && b.Op == syntax.PLUS; b, ok = e.(*syntax.BinaryExpr) {
		terms, e = append(terms, b.Y), b.X
	}
	var text strings.Builder
	var list []any
	texts, lists := 0, 0
	for _, term := range slices.Backward(append(terms, e)) {
		v, err := f.value(term, deep)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case string:
			text.WriteString(v)
			texts++
		case []any:
			list = append(list, v...)
			lists++
		}
	}
	switch {
	case texts == len(terms)+1:
		return text.String(), nil
	case lists == len(terms)+1 && !f.objects:
		return list, nil
	}
	return nil, unknownf("adds something else than texts or lists")
}
