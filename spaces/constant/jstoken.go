package constant

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsLexer cuts JavaScript and TypeScript, which have the same tokens, into
// statements.
type jsLexer struct {
	src      string
	at, line int
	fresh    bool  // no token on this line yet
	before   token // the token before
	ahead    *token
	template int // how deep templates are nested
}

func newJSLexer(src string) *jsLexer { return &jsLexer{src: src, line: 1, fresh: true} }

// statement returns the next statement outside brackets, without the semicolon
// that may end it; false at the end of the file.
func (l *jsLexer) statement() (statement, bool) {
	var s statement
	depth := 0
	for {
		t := l.next()
		switch {
		case t.kind == end:
			return s, len(s.tokens) > 0
		case depth == 0 && t.is(";"):
			if len(s.tokens) > 0 {
				return s, true
			}
			continue
		case depth == 0 && len(s.tokens) > 0 && endsBefore(s, t):
			l.ahead = &t
			return s, true
		case t.opens():
			depth++
		case t.closes():
			depth = max(0, depth-1)
		}
		s.add(t)
	}
}

// endsBefore says whether a statement has ended although no semicolon stands
// between it and what follows. When in doubt it has not: then its value is not
// read.
func endsBefore(s statement, t token) bool {
	last := s.tokens[len(s.tokens)-1]
	if last.is("}") && isBlock(s) {
		return !t.word("else") && !t.word("catch") && !t.word("finally") && !t.word("while")
	}
	switch {
	case t.fresh && onlyBegins(t):
		return !last.word("export") && !last.word("declare")
	case !t.fresh, t.kind == sign && !t.is("}") && !t.is("@"), t.word("as"), t.word("satisfies"), t.word("in"),
		t.word("instanceof"), last.kind == sign && !last.closes() && !last.is("++") && !last.is("--"):
		return false
	case last.is(")"):
		return !isControl(s.tokens[0])
	case last.kind == name:
		return !last.word("else") && !last.word("do") && !last.word("export") && !last.word("default")
	}
	return true
}

// onlyBegins says whether a token can do nothing but begin a statement, so that
// even a type that ends with ">" has ended before it.
func onlyBegins(t token) bool {
	if t.kind != name {
		return false
	}
	switch t.text {
	case "export", "const", "let", "var", "import", "declare", "interface":
		return true
	}
	return false
}

// isBlock says whether a statement ends with the "}" of its body.
func isBlock(s statement) bool {
	first := s.tokens[0]
	if first.word("export") && len(s.tokens) > 1 {
		first = s.tokens[1]
	}
	if first.kind != name {
		return first.is("{")
	}
	switch first.text {
	case "function", "async", "class", "abstract", "interface", "enum", "namespace", "try", "switch":
		return true
	}
	return isControl(first)
}

func isControl(t token) bool {
	return t.word("if") || t.word("for") || t.word("while") || t.word("with") || t.word("else") || t.word("do")
}

func (l *jsLexer) next() token {
	if t := l.ahead; t != nil {
		l.ahead = nil
		return *t
	}
	l.skipSpace()
	if l.at == len(l.src) {
		return token{}
	}
	begin, t := l.at, token{line: l.line, fresh: l.fresh}
	t.kind = l.token(l.src[l.at])
	t.text = l.src[begin:l.at]
	l.fresh, l.before = false, t
	return t
}

// skipSpace passes over white space, line ends and comments.
func (l *jsLexer) skipSpace() {
	for l.at < len(l.src) {
		rest := l.src[l.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case strings.HasPrefix(rest, "//"):
			l.pass(strings.IndexByte(rest, '\n'))
		case strings.HasPrefix(rest, "/*"):
			if size = strings.Index(rest[2:], "*/"); size >= 0 {
				size += 4
			}
			l.pass(size)
		case unicode.IsSpace(r) || r == '\ufeff':
			l.pass(size)
		default:
			return
		}
	}
}

// pass moves on by so many bytes; a negative number is all that is left.
func (l *jsLexer) pass(size int) {
	if size < 0 {
		size = len(l.src) - l.at
	}
	if lines := strings.Count(l.src[l.at:l.at+size], "\n"); lines > 0 {
		l.line += lines
		l.fresh = true
	}
	l.at += size
}

// token passes over the token that begins with c.
func (l *jsLexer) token(c byte) kind {
	switch {
	case c == '"' || c == '\'':
		return l.quoted(c)
	case c == '`':
		return l.quasi()
	case isDigit(c) || c == '.' && isDigit(l.peek(1)):
		l.at += numeral(l.src[l.at:])
		return number
	case isLetter(c) || c == '$':
		for c = l.peek(0); isLetter(c) || isDigit(c) || c == '$'; c = l.peek(0) {
			l.at++
		}
		return name
	case c == '/' && l.regexpBegins():
		return l.regexp()
	}
	if next := l.peek(1); next != 0 && strings.IndexByte("=*/<>.&|?+-", next) >= 0 {
		for _, s := range jsSigns {
			if strings.HasPrefix(l.src[l.at:], s) {
				l.at += len(s)
				return sign
			}
		}
	}
	l.at++
	if c == '#' || c == '@' || c == '\\' {
		return bad
	}
	return sign
}

// jsSigns are the signs of more than one character, the longest first.
var jsSigns = []string{
	">>>=", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "...", "=>", "==", "!=", "<=", ">=", "&&", "||",
	"??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "<<", ">>",
}

func (l *jsLexer) peek(ahead int) byte {
	if l.at+ahead < len(l.src) {
		return l.src[l.at+ahead]
	}
	return 0
}

// quoted passes over a string.
func (l *jsLexer) quoted(quote byte) kind {
	for l.at++; l.at < len(l.src); l.at++ {
		switch l.src[l.at] {
		case quote:
			l.at++
			return text
		case '\n':
			return bad
		case '\\':
			l.at++
			if l.peek(0) == '\n' {
				l.line++
			}
		}
	}
	l.at = len(l.src)
	return bad
}

// quasi passes over a template. One with values in it is bad: it is no constant.
func (l *jsLexer) quasi() kind {
	l.template++
	defer func() { l.template-- }()
	k := text
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; {
		case c == '`':
			l.at++
			return k
		case c == '\n':
			l.line++
		case c == '\\' && l.peek(1) != '\n':
			l.at++
		case c == '$' && l.peek(1) == '{':
			k = bad
			l.at++
			if l.template > maxDepth || !l.substitution() {
				l.at = len(l.src)
			}
		}
	}
	l.at = len(l.src)
	return bad
}

// substitution passes over {…} within a template, up to its "}"; false if that
// is missing.
func (l *jsLexer) substitution() bool {
	for depth := 0; ; {
		switch t := l.next(); {
		case t.kind == end:
			return false
		case t.is("{"):
			depth++
		case t.is("}"):
			if depth--; depth == 0 {
				l.at-- // the caller moves on
				return true
			}
		}
	}
}

// regexp passes over a regular expression, which is no constant.
func (l *jsLexer) regexp() kind {
	class := false
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; {
		case c == '/' && !class:
			l.at++
			return bad
		case c == '\n':
			return bad
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '\\' && l.peek(1) != '\n':
			l.at++
		}
	}
	l.at = len(l.src)
	return bad
}

// regexpBegins tells a regular expression from a division by what stands before.
func (l *jsLexer) regexpBegins() bool {
	switch l.before.kind {
	case text, number, bad:
		return false
	case name:
		switch l.before.text {
		case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "instanceof", "yield", "await":
			return true
		}
		return false
	case sign:
		return !l.before.closes() || l.before.is("}") && l.fresh
	default:
		return true
	}
}
