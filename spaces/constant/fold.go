package constant

import (
	"reflect"
	"strings"
)

// language is what differs between the languages in how values are written.
type language struct {
	words map[string]any // true, None, …
	// unquote returns what a text stands for, numeral what a number does.
	unquote func(written string) (string, error)
	numeral func(written string) (any, error)
	// spread is what a list or mapping is spread into another with.
	spreadList, spreadMap string
	adjacent              bool // texts beside each other are one
	tuples                bool // commas in parentheses, and outside brackets, make a list
	addLists              bool // + joins lists
	bareKeys              bool // {key: 1, [computed]: 2, shorthand}
}

// folder computes the value of an expression.
type folder struct {
	*scope
	lang   *language
	tokens []token
	at     int
}

// fold returns the value of the expression that tokens are.
func (s *scope) fold(lang *language, tokens []token) (value, error) {
	f := folder{scope: s, lang: lang, tokens: tokens}
	v, err := f.expression(0)
	if err == nil && lang.tuples && f.peek().is(",") {
		v, err = f.tuple(v, 0, "")
	}
	if err == nil && f.peek().kind != end {
		err = f.computed()
	}
	return v, err
}

func (f *folder) peek() token {
	if f.at < len(f.tokens) {
		return f.tokens[f.at]
	}
	return token{}
}

func (f *folder) next() token {
	t := f.peek()
	f.at++
	return t
}

// accept takes the next token if it is that sign.
func (f *folder) accept(s string) bool {
	if f.peek().is(s) {
		f.at++
		return true
	}
	return false
}

// expression reads terms that are added up.
func (f *folder) expression(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, unknownf("is nested more than %d deep", maxDepth)
	}
	first, err := f.term(depth)
	if err != nil || !f.peek().is("+") {
		return first, err
	}
	terms := []value{first}
	for f.accept("+") {
		term, err := f.term(depth)
		if err != nil {
			return value{}, err
		}
		terms = append(terms, term)
	}
	return f.sum(terms)
}

// sum joins texts, or lists. It does so at once: joined one by one, many short
// texts behind a long one would be copied for hours.
func (f *folder) sum(terms []value) (value, error) {
	var text strings.Builder
	list, weight := []any{}, 0
	for _, t := range terms {
		switch v := t.v.(type) {
		case string:
			text.WriteString(v)
		case []any:
			list = append(list, v...)
		}
		if reflect.TypeOf(t.v) != reflect.TypeOf(terms[0].v) {
			return value{}, unknownf("adds values of different types")
		}
		weight += t.weight
	}
	switch terms[0].v.(type) {
	case string:
		return value{v: text.String(), weight: weight}, nil
	case []any:
		if f.lang.addLists {
			return contain(list, terms)
		}
	}
	return value{}, unknownf("adds something else than texts or lists")
}

// term reads a value with the annotations that may follow it.
func (f *folder) term(depth int) (value, error) {
	if f.lang.bareKeys && f.accept("<") { // <const>[1, 2]
		f.skipType()
		if !f.accept(">") {
			return value{}, f.computed()
		}
	}
	v, err := f.primary(depth)
	for err == nil && f.lang.bareKeys && (f.peek().word("as") || f.peek().word("satisfies")) {
		f.at++
		f.skipType()
	}
	return v, err
}

func (f *folder) primary(depth int) (value, error) {
	switch t := f.next(); {
	case t.kind == text:
		return f.text(t)
	case t.kind == number:
		return f.number(t, "")
	case t.is("-") || t.is("+"):
		if f.peek().kind != number {
			return value{}, unknownf("uses the operator %s", t.text)
		}
		return f.number(f.next(), t.text)
	case t.kind == name:
		return f.name(t)
	case t.is("("):
		return f.parenthesis(depth + 1)
	case t.is("["):
		return f.list("]", depth+1, nil)
	case t.is("{"):
		return f.mapping(depth + 1)
	}
	f.at--
	return value{}, f.computed()
}

// text reads a text and those that are joined to it by standing beside it.
func (f *folder) text(t token) (value, error) {
	var b strings.Builder
	for {
		s, err := f.lang.unquote(t.text)
		if err == nil {
			err = f.spend(len(s) + 1)
		}
		if err != nil {
			return value{}, err
		}
		b.WriteString(s)
		if !f.lang.adjacent || f.peek().kind != text {
			return value{v: b.String(), weight: b.Len() + 1}, nil
		}
		t = f.next()
	}
}

func (f *folder) number(t token, minus string) (value, error) {
	v, err := f.lang.numeral(t.text)
	if err == nil {
		err = f.spend(1)
	}
	if minus == "-" {
		switch n := v.(type) {
		case int64:
			v = -n
		case float64:
			v = -n
		}
	}
	return value{v: v, weight: 1}, err
}

func (f *folder) name(t token) (value, error) {
	after := f.peek()
	switch {
	case after.kind == text || after.kind == number:
		return value{}, f.computed() // an operator written as a word, or a prefix we do not know
	case after.is("("):
		return value{}, unknownf("calls %s()", t.text)
	case after.is(".") || after.is("?."):
		f.at++
		return value{}, unknownf("uses %s.%s", t.text, f.peek().text)
	case after.is("["):
		return value{}, unknownf("takes a part of %s", t.text)
	case after.is("=>"), t.text == "lambda", t.text == "function", t.text == "async":
		return value{}, unknownf("is a function")
	}
	if v, ok := f.lang.words[t.text]; ok {
		return value{v: v, weight: 1}, f.spend(1)
	}
	switch t.text {
	case "not", "await", "new", "typeof", "void", "class", "yield", "undefined", "NaN", "Infinity":
		return value{}, unknownf("uses %s", t.text)
	}
	return f.look(t.text)
}

// computed explains the token at which no value goes on.
func (f *folder) computed() error {
	switch t := f.peek(); {
	case t.kind == end:
		return unknownf("is cut off")
	case t.kind == bad:
		return unknownf("cannot be read at %s", shorten(t.text))
	case t.is("("):
		return unknownf("makes a call")
	case t.is("."):
		return unknownf("calls a method or uses an attribute")
	case t.is("["):
		return unknownf("takes a part of a value")
	case t.is("=>"), t.is("*") && f.lang.bareKeys, t.is(")") && f.lang.bareKeys:
		return unknownf("is a function")
	case t.word("for"), t.word("async"):
		return unknownf("is built by a comprehension")
	case t.word("if"), t.is("?"), t.word("or"), t.word("and"):
		return unknownf("depends on a condition")
	default:
		return unknownf("uses %s where only constants are read", shorten(t.text))
	}
}

func shorten(s string) string {
	const most = 40
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// skipType passes over a type annotation, up to what can follow a value.
func (f *folder) skipType() {
	depth := 0
	for ; f.at < len(f.tokens); f.at++ {
		t := f.peek()
		switch {
		case t.opens() || t.is("<"):
			depth++
		case depth == 0 && (t.closes() || t.is(">") || t.is(",") || t.is("=") || t.is("+") || t.is(";") || t.word("as") || t.word("satisfies")):
			return
		case t.closes() || t.is(">"):
			depth--
		case t.is(">>"):
			depth -= 2
		}
	}
}

// unescape replaces what begins with a backslash by what escape says that it
// stands for; escape also says how long it is.
func unescape(body string, escape func(string) (string, int, error)) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 {
			b.WriteString(body)
			return b.String(), nil
		}
		b.WriteString(body[:i])
		s, length, err := escape(body[i:])
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		body = body[i+length:]
	}
}
