package constant

import (
	"errors"
	"strconv"
	"strings"

	"go.starlark.net/syntax"
)

var (
	errTooDeep = unknownf("is nested more than %d deep", maxDepth)
	errTooLong = unknownf("is too long")
	errCutOff  = unknownf("is cut off")
)

// language is what differs between the languages in how values are written.
type language struct {
	words    map[string]any // true, None, …
	text     func(written string) (string, error)
	number   func(written string) (any, error)
	adjacent bool // texts beside each other are one
	tuples   bool // commas in parentheses, and outside brackets, make a list
	addLists bool // + joins lists
	numKeys  bool // numbers as keys become texts
}

// expression is what the parser gets. What all languages share is Starlark:
// brackets, commas, colons and +. Texts, numbers and names differ; "#7" stands
// for the leaf with that number. Each token has a line of its own, so that the
// line of an error tells the token.
type expression struct {
	*language
	tokens []token
	lines  []string
	leaves []any // values, and a reference for each name
}

type reference string

// A spread value has a mark before it: [*A] becomes ["*"|A], and {**A} becomes
// {"*":A}. No leaf looks like that.
const (
	spreadMark = `"*"`
	listSpread = spreadMark + "|"
	mapSpread  = spreadMark + ":"
)

// parse returns the tree of an expression, in which spreads are marked.
func (l *language) parse(tokens []token) (*expression, syntax.Expr, error) {
	e := &expression{language: l, tokens: tokens}
	if err := e.write(); err != nil {
		return nil, nil, err
	}
	tree, err := new(syntax.FileOptions).ParseExpr("", "(\n"+strings.Join(e.lines, "\n")+"\n)", 0)
	if refused := (syntax.Error{}); errors.As(err, &refused) {
		return nil, nil, e.refused(refused)
	}
	return e, tree, err
}

// refused explains why the parser refuses an expression.
func (e *expression) refused(err syntax.Error) error {
	t := e.token(int(err.Pos.Line) - 2) // the parenthesis is on line 1
	if t.is(",", "}") && strings.Contains(err.Msg, "want ':'") {
		return unknownf("is a set, which JSON has no form for")
	}
	return misplaced(t)
}

// token returns a token, or the end before the first and behind the last.
func (e *expression) token(i int) token {
	if i < 0 || i >= len(e.tokens) {
		return token{}
	}
	return e.tokens[i]
}

// write writes the lines, and refuses what no constant has: the parser meets
// nothing that is deep, or that languages mean differently.
func (e *expression) write() error {
	if len(e.tokens) == 0 {
		return errCutOff
	}
	depth := 0
	for i, t := range e.tokens {
		line, last := t.text, e.token(i-1)
		var err error
		switch depth += int(t.nest); {
		case depth > maxDepth:
			err = errTooDeep
		case t.kind == name:
			line = e.leaf(reference(t.text))
		case t.kind == text && last.kind == text && e.adjacent:
			line = "" // a part of the leaf before
		case t.kind == text:
			line, err = e.texts(e.tokens[i:])
		case t.kind == number:
			line, err = e.numeral(t, i > 0 && e.lines[i-1] == "" && last.is("-"))
		case t.is("-", "+") && !last.endsValue():
			if line = ""; e.token(i+1).kind != number {
				err = unknownf("uses the operator %s", t.text)
			}
		case depth < 0:
			err = misplaced(t)
		default:
			err = e.check(t, last, e.token(i+1))
		}
		if err != nil {
			return err
		}
		e.lines = append(e.lines, line)
	}
	return nil
}

func (e *expression) leaf(v any) string {
	e.leaves = append(e.leaves, v)
	return `"#` + strconv.Itoa(len(e.leaves)-1) + `"`
}

// texts reads a text and those that are joined to it by standing behind it.
func (e *expression) texts(tokens []token) (string, error) {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && (t.kind != text || !e.adjacent) {
			break
		}
		s, err := e.text(t.text)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return e.leaf(b.String()), nil
}

func (e *expression) numeral(t token, negative bool) (string, error) {
	v, err := e.number(t.text)
	switch n := v.(type) {
	case int64:
		if negative {
			v = -n
		}
	case float64:
		if negative {
			v = -n
		}
	}
	return e.leaf(v), err
}

// check refuses a token that no constant has behind the last.
func (e *expression) check(t, last, next token) error {
	part, of := last.endsValue(), last.kind == name
	switch {
	case t.kind == bad:
		return unknownf("cannot be read at %s", shorten(t.text))
	case part && of && t.is("("):
		return unknownf("calls %s()", last.text)
	case part && of && t.is(".", "?."):
		return unknownf("uses %s.%s", last.text, next.text)
	case part && of && t.is("["):
		return unknownf("takes a part of %s", last.text)
	case part && t.is("("):
		return unknownf("makes a call")
	case part && t.is(".", "?."):
		return unknownf("calls a method or uses an attribute")
	case part && t.is("["):
		return unknownf("takes a part of a value")
	case t.kind == sign && !t.is("(", ")", "[", "]", "{", "}", ",", ":", "+"), t.kind == keyword:
		return misplaced(t)
	}
	return nil
}

// misplaced explains the token at which no value goes on.
func misplaced(t token) error {
	switch {
	case t.kind == end:
		return errCutOff
	case t.is("=>", "lambda", "function"):
		return unknownf("is a function")
	case t.is("for", "async"):
		return unknownf("is built by a comprehension")
	case t.is("if", "?", "or", "and", "&&", "||", "??"):
		return unknownf("depends on a condition")
	case t.is("not", "await", "new", "typeof", "void", "class", "yield"):
		return unknownf("uses %s", t.text)
	}
	return unknownf("uses %s where only constants are read", shorten(t.text))
}

func shorten(s string) string {
	const most = 40
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
