package constant

import (
	"errors"
	"io"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// jsSplitter cuts JavaScript and TypeScript, which have the same tokens, into
// statements.
type jsSplitter struct {
	src    string
	in     *parse.Input
	lexer  *js.Lexer
	line   int
	fresh  bool // no token on this line yet
	last   token
	ahead  *token
	cost   int  // of errors, in bytes
	broken bool // the rest cannot be read
}

// maxErrorCost bounds how much a file may have that is no token: for each the
// lexer goes through all of it.
const maxErrorCost = 64 << 20

func newJSSplitter(src string) *jsSplitter {
	// The lexer trusts the first byte of a rune, and reads one byte too many at the end.
	src = strings.ToValidUTF8(src, "\ufffd") + "\n"
	in := parse.NewInputString(src)
	return &jsSplitter{src: src, in: in, lexer: js.NewLexer(in), line: 1, fresh: true}
}

// statement returns the next statement outside brackets, without the semicolon
// that may end it; it is empty at the end of the file.
func (l *jsSplitter) statement() statement {
	var s statement
	depth := 0
	for {
		t := l.next()
		switch {
		case t.kind == end:
			return s
		case depth == 0 && t.is(";"):
			if len(s.tokens) > 0 {
				return s
			}
			continue
		case depth == 0 && len(s.tokens) > 0 && endsBefore(s, t):
			l.ahead = &t
			return s
		}
		depth = max(0, depth+int(t.nest))
		s.add(t)
	}
}

// endsBefore says whether a statement has ended although no semicolon stands
// between it and what follows. When in doubt it has not: then its value is not
// read.
func endsBefore(s statement, t token) bool {
	last := s.tokens[len(s.tokens)-1]
	switch {
	case last.is("}") && isBlock(s):
		return !t.is("else", "catch", "finally", "while")
	case t.fresh && t.is("export", "const", "let", "var", "import", "declare", "interface"):
		return !last.is("export", "declare") // even a type that ends with ">" has ended
	case !t.fresh, t.kind == sign && !t.is("}"), t.is("as", "satisfies", "in", "instanceof"),
		last.kind == sign && last.nest >= 0 && !last.is("++", "--"):
		return false
	case last.is(")"):
		return !isControl(s.tokens[0])
	}
	return !last.is("else", "do", "export", "default")
}

// isBlock says whether a statement ends with the "}" of its body.
func isBlock(s statement) bool {
	first := s.tokens[0]
	if first.is("export") && len(s.tokens) > 1 {
		first = s.tokens[1]
	}
	return first.is("{", "function", "async", "class", "abstract", "interface", "enum", "namespace", "try", "switch") || isControl(first)
}

func isControl(t token) bool { return t.is("if", "for", "while", "with", "else", "do") }

// next returns the next token but space. A template with values in it is one.
func (l *jsSplitter) next() token {
	if t := l.ahead; t != nil {
		l.ahead = nil
		return *t
	}
	for {
		begin := l.in.Offset()
		tt, t := l.lex()
		if tt == js.TemplateStartToken {
			l.template()
			t.text = l.src[begin:l.in.Offset()]
		}
		if t.kind != space && t.kind != newline {
			return t
		}
	}
}

// template passes over the rest of a template.
func (l *jsSplitter) template() {
	for open := 1; open > 0; {
		switch tt, t := l.lex(); {
		case t.kind == end:
			return
		case tt == js.TemplateStartToken:
			open++
		case tt == js.TemplateEndToken:
			open--
		}
	}
}

func (l *jsSplitter) lex() (js.TokenType, token) {
	t := token{line: l.line, fresh: l.fresh}
	begin := l.in.Offset()
	tt := l.read()
	if !l.broken {
		t.text = l.src[begin:l.in.Offset()]
	}
	t.kind = jsKind(tt, t.text)
	t.nest = nesting(t)
	l.line += strings.Count(t.text, "\n")
	switch {
	case t.kind == newline:
		l.fresh = true
	case tt == js.TemplateStartToken, tt == js.TemplateMiddleToken:
		l.last, l.fresh = token{}, false // a value begins
	case t.kind != space:
		l.last, l.fresh = t, false
	}
	return tt, t
}

// read moves over the next token.
func (l *jsSplitter) read() (tt js.TokenType) {
	defer func() {
		if recover() != nil || l.cost > maxErrorCost {
			tt, l.broken = js.ErrorToken, true
		}
	}()
	if c := l.in.Peek(0); c == '@' || c == '#' { // errors that valid files have
		l.in.Move(1)
		l.in.Skip()
		return js.ErrorToken
	}
	tt, written := l.lexer.Next()
	if (tt == js.DivToken || tt == js.DivEqToken) && (!l.last.endsValue() || l.last.is("}") && l.fresh) {
		tt, _ = l.lexer.RegExp()
	}
	switch {
	case tt != js.ErrorToken || errors.Is(l.lexer.Err(), io.EOF):
	case string(written) == "0": // an old octal number, which is cut in two
		tt, _ = l.lexer.Next()
	default:
		l.cost += len(l.src)
	}
	l.in.Skip()
	return tt
}

func jsKind(tt js.TokenType, written string) kind {
	switch {
	case written == "":
		return end
	case tt == js.LineTerminatorToken, tt == js.CommentLineTerminatorToken:
		return newline
	case tt == js.WhitespaceToken, tt == js.CommentToken && written[0] == '/': // not <!--
		return space
	case tt == js.StringToken, tt == js.TemplateToken:
		return text
	case js.IsNumeric(tt):
		return number
	case js.IsPunctuator(tt):
		return sign
	case tt == js.TrueToken, tt == js.FalseToken, tt == js.NullToken, tt == js.ThisToken,
		js.IsIdentifier(tt) && !strings.Contains(written, `\`):
		return name
	case js.IsReservedWord(tt):
		return keyword
	}
	return bad
}
