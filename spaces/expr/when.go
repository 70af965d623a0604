package expr

import "slices"

// symbols are the operators that the short form writes as signs.
var symbols = map[string]string{
	"==": opEq, "!=": opNe, ">": opGt, ">=": opGte, "<": opLt, "<=": opLte,
}

// ParseWhen reads a condition in the short form. An error is an [*Error] whose
// place is a character, counted in bytes from 1.
func ParseWhen(expression string) (Condition, error) {
	tokens, err := scan(expression)
	if err != nil {
		return Condition{}, err
	}
	p := whenParser{tokens: tokens}
	n, err := p.or(0)
	if err != nil {
		return Condition{}, err
	}
	if t := p.peek(); t.kind != endToken {
		return Condition{}, t.errorf("%s was not expected here; join conditions by and, or", t)
	}
	return Condition{node: n}, nil
}

// whenParser reads tokens, of which the last is an endToken.
type whenParser struct {
	tokens []token
}

func (p *whenParser) peek() token { return p.tokens[0] }

func (p *whenParser) next() token {
	t := p.tokens[0]
	if t.kind != endToken {
		p.tokens = p.tokens[1:]
	}
	return t
}

// took moves past the next token if it is one of the given signs or names.
func (p *whenParser) took(texts ...string) bool {
	t := p.peek()
	if t.kind != signToken && t.kind != nameToken || !slices.Contains(texts, t.text) {
		return false
	}
	p.next()
	return true
}

func (p *whenParser) or(depth int) (node, error) {
	parts, err := p.joined(func() (node, error) { return p.and(depth) }, "or", "||")
	if err != nil || len(parts) == 1 {
		return first(parts), err
	}
	return anyOf(parts), nil
}

func (p *whenParser) and(depth int) (node, error) {
	parts, err := p.joined(func() (node, error) { return p.factor(depth) }, "and", "&&")
	if err != nil || len(parts) == 1 {
		return first(parts), err
	}
	return all(parts), nil
}

// joined reads parts with one of the given tokens between them.
func (p *whenParser) joined(read func() (node, error), by ...string) ([]node, error) {
	var parts []node
	for {
		n, err := read()
		if err != nil {
			return nil, err
		}
		parts = append(parts, n)
		if !p.took(by...) {
			return parts, nil
		}
	}
}

func first(parts []node) node {
	if len(parts) == 0 {
		return nil
	}
	return parts[0]
}

func (p *whenParser) factor(depth int) (node, error) {
	if depth > maxDepth {
		return nil, p.peek().errorf("conditions are nested more than %d deep", maxDepth)
	}
	if p.took("not", "!") {
		inner, err := p.factor(depth + 1)
		return negation{inner}, err
	}
	if !p.took("(") {
		return p.test()
	}
	inner, err := p.or(depth + 1)
	if err != nil {
		return nil, err
	}
	if t := p.peek(); !p.took(")") {
		return nil, t.errorf("want ) before %s", t)
	}
	return inner, nil
}

func (p *whenParser) test() (node, error) {
	left := p.next()
	at, err := left.path()
	if err != nil {
		return nil, err
	}
	sign := p.next()
	op := sign.text
	if named, ok := symbols[op]; ok {
		op = named
	}
	if sign.kind == textToken || !slices.Contains(Ops(), op) {
		return nil, sign.errorf("want an operator after %s, one of == != > >= < <= in contains regex exists, before %s", left.text, sign)
	}
	if op == opExists {
		return test{path: at, op: op}, nil
	}
	place := p.peek()
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	n, err := newTest(at, op, right, "")
	if err != nil {
		return nil, place.errorf("%s", reason(err))
	}
	return n, nil
}

func (p *whenParser) operand() (operand, error) {
	t := p.peek()
	if value, ok := t.literal(); ok {
		p.next()
		return operand{value: value}, nil
	}
	if p.took("[") {
		list, err := p.list()
		return operand{value: list}, err
	}
	p.next()
	at, err := t.path()
	if err != nil {
		return operand{}, t.errorf("want a value or a path before %s; text stands in quotes", t)
	}
	if !p.took("*") {
		return operand{path: at}, nil
	}
	factor := p.next()
	value, _ := factor.literal()
	n, ok := number(value)
	if !ok || n == 0 {
		return operand{}, factor.errorf("want a number other than 0 after *")
	}
	return operand{path: at, factor: n}, nil
}

// list reads the values of a list up to its end.
func (p *whenParser) list() ([]any, error) {
	list := []any{}
	for !p.took("]") {
		if t := p.peek(); len(list) > 0 && !p.took(",") {
			return nil, t.errorf("want , or ] before %s", t)
		}
		t := p.next()
		value, ok := t.literal()
		if !ok {
			return nil, t.errorf("want a value before %s; a list holds text in quotes, numbers, true, false and null", t)
		}
		list = append(list, value)
	}
	return list, nil
}
