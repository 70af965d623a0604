package constant

import "strings"

// pySplitter cuts Python into statements.
type pySplitter struct {
	src  string
	line int
}

// statement returns the next logical line; it is empty at the end of the file.
func (p *pySplitter) statement() statement {
	var s statement
	depth, fresh := 0, true
	for p.src != "" {
		kind, size := pyToken(p.src)
		t := token{kind: kind, text: p.src[:size], line: p.line, fresh: fresh}
		p.src = p.src[size:]
		p.line += strings.Count(t.text, "\n")
		switch {
		case kind == newline && len(s.tokens) > 0 && depth == 0:
			return s
		case kind == newline:
			fresh = true
			s.indented = s.indented && len(s.tokens) > 0
		case kind != space:
			t.nest = nesting(t)
			depth = max(0, depth+int(t.nest))
			fresh = false
			s.add(t)
		case len(s.tokens) == 0 && t.text[0] != '\\':
			s.indented = true
		}
	}
	return s
}

// pyToken returns the kind and the size of the token that src begins with.
func pyToken(src string) (kind, int) {
	size := 0
	switch c := src[0]; {
	case c == '\n' || c == '\r':
		return newline, 1
	case c == ' ' || c == '\t' || c == '\f':
		return space, len(src) - len(strings.TrimLeft(src, " \t\f"))
	case strings.HasPrefix(src, "\\\n"):
		return space, 2
	case c == '#':
		if size = strings.IndexAny(src, "\n\r"); size < 0 {
			size = len(src)
		}
		return space, size
	case isDigit(c) || c == '.' && len(src) > 1 && isDigit(src[1]):
		return number, numberSize(src)
	case strings.IndexByte("\\$?`", c) >= 0, c == '!' && !strings.HasPrefix(src, "!="):
		return bad, 1
	}
	for size < len(src) && (isLetter(src[size]) || isDigit(src[size])) {
		size++
	}
	switch word := src[:size]; {
	case size < len(src) && (src[size] == '"' || src[size] == '\'') && (size == 0 || isPrefix(word)):
		kind, quoted := pyQuoted(src[size:])
		return kind, size + quoted
	case size == 0:
		return sign, pySign(src)
	default:
		switch word {
		case "and", "async", "await", "else", "for", "if", "in", "is", "lambda", "not", "or", "yield":
			return keyword, size
		}
		return name, size
	}
}

// isPrefix tells r"…" and its kin from a name in front of a text.
func isPrefix(word string) bool {
	return len(word) <= 2 && strings.Trim(word, "rRuUbBfFtT") == ""
}

// pyQuoted returns the size of the text that src begins with, in all its forms.
func pyQuoted(src string) (kind, int) {
	quote := src[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(src, triple) {
		quote = triple
	}
	for at := len(quote); at < len(src); at++ {
		switch {
		case strings.HasPrefix(src[at:], quote):
			return text, at + len(quote)
		case src[at] == '\n' && len(quote) == 1:
			return bad, at
		case src[at] == '\\':
			at++ // what it escapes
		}
	}
	return bad, len(src)
}

// pySign returns the size of the sign that src begins with.
func pySign(src string) int {
	if len(src) == 1 || strings.IndexByte("=*/<>.", src[1]) < 0 {
		return 1
	}
	for _, s := range []string{
		"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", ":=",
		"+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^=",
	} {
		if strings.HasPrefix(src, s) {
			return len(s)
		}
	}
	return 1
}

// numberSize is the size of the number that src begins with. Its value
// shows when it is read.
func numberSize(src string) int {
	hex := len(src) > 1 && src[1]|0x20 == 'x'
	for i := range len(src) {
		c := src[i]
		exponent := (c == '+' || c == '-') && !hex && i > 0 && src[i-1]|0x20 == 'e'
		if !isDigit(c) && !isLetter(c) && c != '.' && !exponent {
			return i
		}
	}
	return len(src)
}
