package constant

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	end     kind = iota // of the file
	newline             // of a logical line, in Python
	name
	text
	number
	sign // operators and brackets
	bad  // what no expression can hold
)

// token is a word of a source file.
type token struct {
	kind  kind
	text  string // as written
	line  int
	fresh bool // first on its line
}

func (t token) is(s string) bool { return t.kind == sign && t.text == s }

func (t token) word(s string) bool { return t.kind == name && t.text == s }

// opens and closes tell how a token changes the depth of brackets.
func (t token) opens() bool { return t.kind == sign && strings.ContainsAny(t.text, "([{") }

func (t token) closes() bool { return t.kind == sign && strings.ContainsAny(t.text, ")]}") }

// assigns says whether a token is "=" or one of its kin: "+=", ":=", "??=".
func (t token) assigns() bool {
	if t.kind != sign || !strings.HasSuffix(t.text, "=") {
		return false
	}
	switch t.text {
	case "==", "!=", "<=", ">=", "===", "!==":
		return false
	}
	return true
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
		switch {
		case t.opens():
			depth++
		case t.closes():
			depth--
		case depth == 0 && t.is(separator):
			parts = append(parts, tokens[begin:i])
			begin = i + 1
		}
	}
	return append(parts, tokens[begin:])
}

// numeral is the length of the number that src begins with. What number it is
// shows when it is read.
func numeral(src string) int {
	hex := len(src) > 1 && src[0] == '0' && src[1]|0x20 == 'x'
	for i := range len(src) {
		c := src[i]
		exponent := (c == '+' || c == '-') && !hex && i > 0 && src[i-1]|0x20 == 'e'
		if !isDigit(c) && !isLetter(c) && c != '.' && !exponent {
			return i
		}
	}
	return len(src)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// touched lists the names that a statement may bind or change: those left of an
// assignment, behind words like "as" and "del", and those that something is
// called on. Deep looks into brackets too. It names rather too many than too few.
func touched(tokens []token, deep bool) []string {
	names := map[string]bool{}
	depth, binding := 0, false
	for i, t := range tokens {
		switch {
		case t.opens():
			depth++
		case t.closes():
			depth--
		}
		if depth > 0 && !deep && !t.is(":=") && !t.word("as") && !binding {
			continue
		}
		switch {
		case t.assigns(), t.is("++"), t.is("--"):
			for _, n := range targets(tokens[:i]) {
				names[n] = true
			}
			binding = false
			if !t.assigns() && i+1 < len(tokens) {
				names[tokens[i+1].text] = true
			}
		case binds(t):
			binding = true
		case ends(t):
			binding = false
		case t.kind == name && (binding || begins(tokens, i)):
			names[t.text] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// begins says whether token i begins a statement that may change what it names:
// NAME.method(…), NAME[…] …
func begins(tokens []token, i int) bool {
	if i+1 == len(tokens) || !tokens[i+1].is(".") && !tokens[i+1].is("[") {
		return false
	}
	if i == 0 || tokens[i].fresh {
		return true
	}
	before := tokens[i-1]
	return before.is(";") || before.is(":") || before.is("{") || before.is("}") || before.is(")")
}

// binds says whether names follow a token that it binds or deletes.
func binds(t token) bool {
	if t.kind != name {
		return false
	}
	switch t.text {
	case "as", "for", "del", "delete", "import", "def", "class", "function", "async":
		return true
	}
	return false
}

// ends says whether the names have ended that a word binds.
func ends(t token) bool {
	return t.word("in") || t.word("of") || t.is(":") || t.is("{") || t.is(";")
}

// bound lists the names among tokens up to the end of what a word binds.
func bound(tokens []token) []string {
	var names []string
	for _, t := range tokens {
		if ends(t) {
			break
		}
		if t.kind == name {
			names = append(names, t.text)
		}
	}
	return names
}

// maxTarget bounds how many tokens the left side of an assignment has.
const maxTarget = 1000

// targets lists the names in the expression that ends with tokens: a.b[c] has
// a and c, (a, b) has both.
func targets(tokens []token) []string {
	var names []string
	depth := 0
	for _, t := range slices.Backward(tokens[max(0, len(tokens)-maxTarget):]) {
		switch {
		case t.closes():
			depth++
		case t.opens():
			if depth--; depth < 0 {
				return names
			}
		case t.kind == name:
			names = append(names, t.text)
		case t.kind == text, t.kind == number, t.is("."), t.is("*"), t.is("..."), t.is("?."):
		case depth == 0 && !t.is(",") && !t.is(":"):
			return names
		}
	}
	return names
}
