package expr

import (
	"strconv"
	"strings"
)

// tokenKind is what a piece of the short form is.
type tokenKind int

const (
	endToken  tokenKind = iota
	nameToken           // a path, a word or a number
	textToken           // text that stood in quotes
	signToken           // an operator or a bracket
)

type token struct {
	kind tokenKind
	text string
	at   int // in bytes from 0
}

func (t token) String() string {
	if t.kind == endToken {
		return "the end"
	}
	return strconv.Quote(t.text)
}

func (t token) errorf(format string, args ...any) error {
	return errorAt("character "+strconv.Itoa(t.at+1), format, args...)
}

func (t token) path() (path, error) {
	p, ok := parsePath(t.text)
	if t.kind != nameToken || !ok {
		return nil, t.errorf("want the path of the data to look at, such as cost.turns, before %s", t)
	}
	return p, nil
}

// literal is the value of text in quotes, a number, true, false or null.
func (t token) literal() (any, bool) {
	switch {
	case t.kind == textToken:
		return t.text, true
	case t.kind != nameToken:
		return nil, false
	case t.text == "true", t.text == "false":
		return t.text == "true", true
	case t.text == "null":
		return nil, true
	}
	if i, err := strconv.ParseInt(t.text, 10, 64); err == nil {
		return i, true
	}
	if !strings.ContainsAny(t.text[:1], "-.0123456789") {
		return nil, false // a path such as inf
	}
	f, err := strconv.ParseFloat(t.text, 64)
	return f, err == nil
}

// scan takes an expression apart.
func scan(s string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(s); {
		t, size, err := scanOne(s, at)
		if err != nil {
			return nil, err
		}
		if size == 0 { // a blank
			at++
			continue
		}
		tokens = append(tokens, t)
		at += size
	}
	return append(tokens, token{at: len(s)}), nil
}

func scanOne(s string, at int) (t token, size int, err error) {
	t = token{kind: signToken, at: at}
	switch c := s[at]; {
	case strings.IndexByte(" \t\r\n", c) >= 0:
		return t, 0, nil
	case c == '"' || c == '\'':
		return scanText(s, at)
	case strings.IndexByte("()[],*", c) >= 0:
		t.text = s[at : at+1]
		return t, 1, nil
	}
	for _, sign := range []string{"==", "!=", ">=", "<=", "&&", "||", ">", "<", "!"} {
		if strings.HasPrefix(s[at:], sign) {
			t.text = sign
			return t, len(sign), nil
		}
	}
	t.kind = nameToken
	size = nameSize(s[at:])
	t.text = s[at : at+size]
	if size == 0 {
		return t, 0, t.errorf("%q has no meaning here", firstRune(s[at:]))
	}
	return t, size, nil
}

// nameSize is the length of the path, word or number at the front of s, with
// indices in brackets.
func nameSize(s string) int {
	n := 0
	for n < len(s) {
		switch c := s[n]; {
		case isLetter(c), isDigit(c), c == '-', c == '.', c == '+' && n > 0 && s[n-1] == 'e':
			n++
		case c == '[' && n > 0:
			digits, _, closed := strings.Cut(s[n+1:], "]")
			if !closed || strings.Trim(digits, "0123456789") != "" {
				return n
			}
			n += len(digits) + 2
		default:
			return n
		}
	}
	return n
}

func firstRune(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}

// scanText reads text in quotes.
func scanText(s string, at int) (t token, size int, err error) {
	t = token{kind: textToken, at: at}
	quote := s[at]
	var text strings.Builder
	for i := at + 1; i < len(s); i++ {
		c := s[i]
		if c == quote {
			t.text = text.String()
			return t, i + 1 - at, nil
		}
		if c == '\\' && i+1 < len(s) && (s[i+1] == quote || s[i+1] == '\\') {
			i++
			c = s[i]
		}
		text.WriteByte(c)
	}
	return t, 0, t.errorf("the text that begins here has no end")
}
