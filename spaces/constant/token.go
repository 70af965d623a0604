package constant

import (
	"slices"
	"strings"
)

type kind uint8

const (
	end   kind = iota // of the file
	space             // and comments
	newline
	name
	keyword // no name, and no value
	text
	number
	sign   // operators and brackets
	spread // marked for the parser
	bad    // what no expression can hold
)

// token is a word of a source file.
type token struct {
	text  string // as written
	line  int
	kind  kind
	nest  int8 // what it adds to the depth of brackets
	fresh bool // first on its line
}

// is says whether a token is one of some words and signs.
func (t token) is(any ...string) bool {
	return t.kind != text && t.kind != bad && slices.Contains(any, t.text)
}

// nesting is what a bracket adds to the depth.
func nesting(t token) int8 {
	switch {
	case t.is("(", "[", "{"):
		return 1
	case t.is(")", "]", "}"):
		return -1
	}
	return 0
}

// endsValue says whether a value can end with a token.
func (t token) endsValue() bool {
	return t.nest < 0 || t.nest == 0 && (t.kind == name || t.kind == text || t.kind == number || t.kind == bad)
}

// assigns says whether a token is "=" or one of its kin: "+=", ":=", "??=".
func (t token) assigns() bool {
	return t.kind == sign && t.text[len(t.text)-1] == '=' && !t.is("==", "!=", "<=", ">=", "===", "!==")
}

// statement is the tokens of one, as far as they are kept.
type statement struct {
	tokens   []token
	indented bool
	cut      bool // there were more than maxTokens
}

func (s *statement) add(t token) {
	if len(s.tokens) == maxTokens {
		s.cut = true
		return
	}
	s.tokens = append(s.tokens, t)
}

// split divides tokens at a separator outside brackets.
func split(tokens []token, separator string) [][]token {
	var parts [][]token
	depth, begin := 0, 0
	for i, t := range tokens {
		depth += int(t.nest)
		if depth == 0 && t.is(separator) {
			parts = append(parts, tokens[begin:i])
			begin = i + 1
		}
	}
	return append(parts, tokens[begin:])
}

// join is tokens as text.
func join(tokens []token, separator string) string {
	written := make([]string, len(tokens))
	for i, t := range tokens {
		written[i] = t.text
	}
	return strings.Join(written, separator)
}

func names(tokens []token) []string {
	var all []string
	for _, t := range tokens {
		if t.kind == name {
			all = append(all, t.text)
		}
	}
	return all
}

// touched lists the names that a statement may bind or change: those left of an
// assignment, behind words like "as" and "del", and those that something is
// called on. Deep looks into brackets too. It names rather too many than too few.
func touched(tokens []token, deep bool) []string {
	var all []string
	depth, binding := 0, false
	for i, t := range tokens {
		depth += int(t.nest)
		if depth > 0 && !deep && !t.is(":=", "as") && !binding {
			continue
		}
		switch {
		case t.is("++", "--"):
			all = append(all, targets(tokens[:i])...)
			all = append(all, names(tokens[i+1:min(i+2, len(tokens))])...)
			binding = false
		case t.assigns():
			all = append(all, targets(tokens[:i])...)
			binding = false
		case t.is("as", "for", "del", "delete", "import", "def", "class", "function", "async"):
			binding = true
		case t.is("in", "of", ":", "{", ";"):
			binding = false
		case t.kind == name && (binding || begins(tokens, i)):
			all = append(all, t.text)
		}
	}
	return all
}

// begins says whether token i begins a statement that may change what it names:
// NAME.method(…), NAME[…] …
func begins(tokens []token, i int) bool {
	if i+1 == len(tokens) || !tokens[i+1].is(".", "[") {
		return false
	}
	return i == 0 || tokens[i].fresh || tokens[i-1].is(";", ":", "{", "}", ")")
}

// maxTarget bounds how many tokens the left side of an assignment has.
const maxTarget = 1000

// targets lists the names in the expression that ends with tokens: a.b[c] has
// a and c, (a, b) has both.
func targets(tokens []token) []string {
	var all []string
	depth := 0
	for _, t := range slices.Backward(tokens[max(0, len(tokens)-maxTarget):]) {
		depth -= int(t.nest)
		switch {
		case depth < 0:
			return all
		case t.kind == name:
			all = append(all, t.text)
		case depth == 0 && t.nest == 0 && t.kind != text && t.kind != number && !t.is(".", "*", "...", "?.", ",", ":"):
			return all
		}
	}
	return all
}
