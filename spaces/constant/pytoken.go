package constant

import "strings"

// pyLexer cuts Python into tokens.
type pyLexer struct {
	src      string
	at, line int
	depth    int  // of brackets, within which lines do not end
	begun    bool // the logical line has a token
	fresh    bool // no token on this line yet
	indent   int  // width of the white space before the logical line
}

func newPyLexer(src string) *pyLexer { return &pyLexer{src: src, line: 1, fresh: true} }

// statement returns the next logical line; false at the end of the file.
func (l *pyLexer) statement() (statement, bool) {
	var s statement
	for {
		switch t := l.next(); t.kind {
		case end:
			s.indented = l.indent > 0
			l.begun = false
			return s, len(s.tokens) > 0
		case newline:
			s.indented = l.indent > 0
			l.begun, l.indent = false, 0
			return s, true
		default:
			s.add(t)
		}
	}
}

func (l *pyLexer) peek(ahead int) byte {
	if l.at+ahead < len(l.src) {
		return l.src[l.at+ahead]
	}
	return 0
}

func (l *pyLexer) next() token {
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == ' ' || c == '\t' || c == '\f':
			if !l.begun && l.fresh {
				l.indent++
			}
			l.at++
		case c == '#':
			l.skipLine()
		case c == '\n' || c == '\r':
			l.at++
			if c == '\n' {
				l.line++
			}
			l.fresh = true
			if l.begun && l.depth == 0 {
				return token{kind: newline}
			}
			if !l.begun {
				l.indent = 0
			}
		case c == '\\' && l.peek(1) == '\n':
			l.at += 2
			l.line++
		default:
			return l.token(c)
		}
	}
	return token{kind: end}
}

func (l *pyLexer) skipLine() {
	if i := strings.IndexAny(l.src[l.at:], "\n\r"); i >= 0 {
		l.at += i
		return
	}
	l.at = len(l.src)
}

// token reads the token that begins with c.
func (l *pyLexer) token(c byte) token {
	begin := l.at
	t := token{line: l.line, fresh: l.fresh}
	l.begun, l.fresh = true, false
	switch {
	case c == '"' || c == '\'':
		t.kind = l.quoted()
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		t.kind = number
		l.at += numeral(l.src[l.at:])
	case isLetter(c):
		t.kind = name
		for l.at < len(l.src) && (isLetter(l.src[l.at]) || isDigit(l.src[l.at])) {
			l.at++
		}
		if q := l.peek(0); (q == '"' || q == '\'') && isPrefix(l.src[begin:l.at]) {
			t.kind = l.quoted()
		}
	default:
		t.kind = l.sign(c)
	}
	t.text = l.src[begin:l.at]
	return t
}

// isPrefix tells r"…" and its kin from a name in front of a text.
func isPrefix(s string) bool {
	switch strings.ToLower(s) {
	case "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
		return true
	}
	return false
}

// quoted passes over a text, in all its forms.
func (l *pyLexer) quoted() kind {
	quote := l.src[l.at : l.at+1]
	triple := strings.Repeat(quote, 3)
	long := strings.HasPrefix(l.src[l.at:], triple)
	if long {
		quote = triple
	}
	l.at += len(quote)
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case strings.HasPrefix(l.src[l.at:], quote):
			l.at += len(quote)
			return text
		case c == '\n' && !long:
			return bad
		case c == '\\' && l.at+1 < len(l.src):
			l.at++ // what it escapes follows
		}
		if l.src[l.at] == '\n' {
			l.line++
		}
		l.at++
	}
	return bad
}

// pySigns are the signs of more than one character, the longest first.
var pySigns = []string{
	"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", ":=",
	"+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^=",
}

func (l *pyLexer) sign(c byte) kind {
	if next := l.peek(1); next != 0 && strings.IndexByte("=*/<>.", next) >= 0 {
		for _, s := range pySigns {
			if strings.HasPrefix(l.src[l.at:], s) {
				l.at += len(s)
				return sign
			}
		}
	}
	l.at++
	switch c {
	case '(', '[', '{':
		l.depth++
	case ')', ']', '}':
		l.depth = max(0, l.depth-1)
	case '\\', '$', '?', '`', '!':
		return bad
	}
	return sign
}
