package constant

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// javaScript is how JavaScript and TypeScript write values.
var javaScript = sync.OnceValue(func() *language {
	return &language{
		words:     map[string]any{"true": true, "false": false, "null": nil},
		text:      jsText,
		binds:     regexp.MustCompile(`^\s*(?:(?:export|declare)\s+)*(?:const|let|var)\s+(?:[^\n]*\x04\s*)?$|^\s*(?:exports\.[\w$]+\s*=\s*)*(?:module\.)?exports\.$`),
		changes:   changesBehind(""),
		blocks:    regexp.MustCompile(`^(?:\{|(?:if|for|while|with|else|do|try|switch)\b)`),
		functions: regexp.MustCompile(`^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function|class|interface|enum|namespace|type)\b`),
		nextBinds: regexp.MustCompile(`^\s*(?:[\w$]+\s*(?:=(?:[^=>]|$)|:)|[\[{])`),
		ends:      "\n;\x04",
		objects:   true,
	}
})

// JavaScript reads names that a JavaScript or TypeScript file binds at its top
// level: const, let and var, exported or not, exports.NAME and
// module.exports.NAME. Annotations of TypeScript are passed over. A name that the
// file says nothing about is left out.
func JavaScript(src string, names ...string) map[string]Constant {
	// The lexer trusts the first byte of a rune.
	o := newOutline(javaScript(), strings.ToValidUTF8(strings.ReplaceAll(src, "\r\n", "\n"), "\ufffd"))
	l := newJSLexer(o.src)
	for tt, begin, end := l.next(); begin < len(o.src); tt, begin, end = l.next() {
		switch end = min(end, len(o.src)); {
		case tt == js.CommentToken && o.src[begin] == '/', tt == js.CommentLineTerminatorToken:
			o.hide(begin, end, ' ')
		case tt == js.StringToken, tt == js.TemplateToken:
			o.hideText(begin, end)
		case tt == js.WhitespaceToken, tt == js.LineTerminatorToken:
			o.hide(begin, end, ' ')
		case tt == js.ErrorToken, tt == js.RegExpToken, tt == js.CommentToken,
			tt == js.TemplateStartToken, tt == js.TemplateMiddleToken, tt == js.TemplateEndToken:
			o.hide(begin, end, noValue)
		}
	}
	if l.broken {
		o.unread = "stands in a file that cannot be read to its end"
	}
	o.nest(o.endsLine)
	return o.constants(names)
}

var (
	declaring = []string{"export", "const", "let", "var", "import", "declare", "interface", "function", "class"}
	goingOn   = []string{"as", "satisfies", "in", "instanceof", "else", "catch", "finally"}
)

// endsLine says whether a statement has ended at the end of a line although no
// semicolon stands there. When in doubt it has not: then its value is not read.
func (o *outline) endsLine(start, newline int) bool {
	before := bytes.TrimRight(o.shape[max(start, newline-window):newline], " \t")
	before = before[max(0, len(before)-len("_default")):]
	after := bytes.TrimLeft(o.shape[newline:min(newline+window, len(o.shape))], " \t\n")
	size := 0
	for size < len(after) && isWord(after[size]) {
		size++
	}
	switch word := string(after[:size]); {
	case len(after) == 0:
		return true
	case slices.Contains(declaring, word):
		return !bytes.HasSuffix(before, []byte("export")) && !bytes.HasSuffix(before, []byte("declare")) && !bytes.HasSuffix(before, []byte("default"))
	case slices.Contains(goingOn, word),
		bytes.IndexByte([]byte("-=*/%&|<>,)].?:+^([{"), after[0]) >= 0 && !bytes.HasPrefix(after, []byte("++")) && !bytes.HasPrefix(after, []byte("--")):
		return false
	case bytes.HasSuffix(before, []byte(")")):
		return !o.controls.Match(o.shape[start:newline])
	}
	return !o.unfinished.Match(before) || o.counts.Match(before)
}

// jsLexer finds the tokens of JavaScript and TypeScript, which have the same.
type jsLexer struct {
	src    string
	in     *parse.Input
	lexer  *js.Lexer
	value  bool // the last token ends a value
	brace  bool // and is the end of an object or a block
	cost   int  // of errors, in bytes
	broken bool // the rest cannot be read
}

// maxErrorCost bounds how much a file may have that is no token: for each the
// lexer goes through all of it.
const maxErrorCost = 64 << 20

func newJSLexer(src string) *jsLexer {
	in := parse.NewInputString(src + "\n") // the lexer reads one byte too many at the end
	return &jsLexer{src: src, in: in, lexer: js.NewLexer(in)}
}

// next returns the next token and where it is.
func (l *jsLexer) next() (tt js.TokenType, begin, end int) {
	begin = l.in.Offset()
	if tt = l.read(); l.broken {
		return tt, len(l.src), len(l.src)
	}
	return tt, begin, l.in.Offset()
}

// read moves over the next token.
func (l *jsLexer) read() (tt js.TokenType) {
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
	if (tt == js.DivToken || tt == js.DivEqToken) && !l.value {
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
	switch tt {
	case js.LineTerminatorToken, js.CommentLineTerminatorToken:
		l.value = l.value && !l.brace // a line begins with a regular expression rather than with a division
	case js.WhitespaceToken, js.CommentToken:
	case js.CloseBraceToken, js.CloseBracketToken, js.CloseParenToken, js.StringToken, js.TemplateToken, js.TemplateEndToken, js.RegExpToken,
		js.TrueToken, js.FalseToken, js.NullToken, js.ThisToken:
		l.value = true
	default:
		l.value = js.IsNumeric(tt) || js.IsIdentifier(tt)
	}
	if tt != js.WhitespaceToken && tt != js.CommentToken {
		l.brace = tt == js.CloseBraceToken
	}
	return tt
}
