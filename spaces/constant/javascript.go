package constant

import (
	"slices"
	"strings"
)

// javaScript is how JavaScript and TypeScript write values.
var javaScript = &language{
	words: map[string]any{"true": true, "false": false, "null": nil},
	text:  jsText, number: jsNumber,
	numKeys: true,
}

// JavaScript reads the names that a JavaScript or TypeScript file binds at its
// top level: const, let and var, exported or not, exports.NAME and
// module.exports.NAME. Annotations of TypeScript are passed over.
func JavaScript(src string) Table {
	r := jsReader{scope: newScope()}
	l := newJSSplitter(strings.ReplaceAll(src, "\r\n", "\n"))
	for s := l.statement(); len(s.tokens) > 0; s = l.statement() {
		r.read(s)
	}
	if l.broken {
		r.forgetAll(l.line, "stands in a file that cannot be read to its end")
	}
	return r.table
}

type jsReader struct {
	*scope
}

func (r *jsReader) read(s statement) {
	tokens := s.tokens
	if tokens[0].is("export", "declare") {
		if tokens = tokens[1:]; len(tokens) == 0 {
			return
		}
	}
	first := tokens[0]
	switch {
	case first.is("const", "let", "var") && len(tokens) > 1 && !tokens[1].is("enum"):
		for _, part := range split(untyped(tokens[1:]), ",") {
			r.declare(part, s.cut)
		}
	case first.is("import"):
		r.imports(tokens)
	case first.is("function", "async", "class"):
		r.change(touched(tokens[:min(len(tokens), 3)], false), first.line, "is defined")
	case isBlock(s):
		r.change(touched(tokens, true), first.line, inBlock)
	default:
		r.other(tokens, s.cut)
	}
}

// declare binds NAME = value, or what a pattern names.
func (r *jsReader) declare(tokens []token, cut bool) {
	parts := split(tokens, "=")
	for _, part := range parts[1:max(1, len(parts)-1)] { // A = B = 1
		r.change(names(part), tokens[0].line, changed)
	}
	switch {
	case len(tokens) == 0:
	case tokens[0].kind != name:
		r.change(names(parts[0]), tokens[0].line, "is bound by a pattern")
	case len(tokens) == 1 || !tokens[1].is("="):
		r.forget(tokens[0].text, tokens[0].line, "has no value where it is declared")
	default:
		r.set(tokens[0], tokens[2:], cut)
	}
}

func (r *jsReader) set(to token, expression []token, cut bool) {
	tokens, err := jsShape(expression)
	var v value
	if err == nil {
		v, err = r.fold(javaScript, tokens)
	}
	if cut {
		err = errTooLong
	}
	r.bind(to.text, to.line, v, err)
}

// imports records what comes from elsewhere.
func (r *jsReader) imports(tokens []token) {
	how := "is imported"
	if i := slices.IndexFunc(tokens, func(t token) bool { return t.is("from") }); i >= 0 && i+1 < len(tokens) {
		how += " from " + shorten(tokens[i+1].text)
		tokens = tokens[:i]
	}
	r.change(names(tokens[1:]), tokens[0].line, how)
}

// other reads exports.NAME = value, or finds out what a statement changes.
func (r *jsReader) other(tokens []token, cut bool) {
	rest := tokens
	if len(rest) > 2 && rest[0].is("module") && rest[1].is(".") {
		rest = rest[2:]
	}
	switch {
	case len(rest) < 4 || !rest[0].is("exports"):
	case rest[1].is(".") && rest[3].is("="):
		r.set(rest[2], untyped(rest[4:]), cut)
		return
	case rest[1].is("=") && rest[2].is("{"):
		r.exported(rest[3:])
		return
	}
	r.change(touched(tokens, false), tokens[0].line, changed)
}

// exported looks at module.exports = {…}: what has its value there, and not in
// a constant of its own, is not read.
func (r *jsReader) exported(tokens []token) {
	for _, entry := range split(tokens, ",") {
		if len(entry) > 1 && entry[0].kind == name && entry[1].is(":") {
			r.forget(entry[0].text, entry[0].line, "has its value within module.exports; make it a constant")
		}
	}
}

// untyped leaves out the types of TypeScript: behind declared names, behind "as"
// and "satisfies", and in <const>[1, 2].
func untyped(tokens []token) []token {
	out := make([]token, 0, len(tokens))
	depth, last := 0, token{}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		depth += int(t.nest)
		declared := depth == 0 && last.kind == name && (len(out) == 1 || out[max(0, len(out)-2)].is(","))
		switch {
		case t.is("as", "satisfies") && last.endsValue(), t.is(":") && declared:
			i = typeEnd(tokens, i+1) - 1
			continue
		case t.is("<") && !last.endsValue():
			if to := typeEnd(tokens, i+1); to < len(tokens) && tokens[to].is(">") {
				i = to
				continue
			}
		}
		out, last = append(out, t), t
	}
	return out
}

// typeEnd returns the place where the type that begins at i has ended.
func typeEnd(tokens []token, i int) int {
	for depth := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t.nest > 0 || t.is("<"):
			depth++
		case depth <= 0 && (t.nest < 0 || t.kind == sign && !t.is(".", "|", "&", "=>") || t.is("as", "satisfies")):
			return i
		case t.nest < 0 || t.is(">"):
			depth--
		case t.is(">>"):
			depth -= 2
		}
	}
	return i
}

// jsShape marks spreads, and writes the keys of objects as texts: {a, [b]: 1}
// becomes {"a": a, (b): 1}.
func jsShape(tokens []token) ([]token, error) {
	out := make([]token, 0, len(tokens))
	var open []string // brackets around; that of a computed key is ":"
	for i, t := range tokens {
		last, next, around := token{}, token{}, ""
		if i > 0 {
			last = tokens[i-1]
		}
		if i+1 < len(tokens) {
			next = tokens[i+1]
		}
		if len(open) > 0 {
			around = open[len(open)-1]
		}
		isKey := around == "{" && last.is("{", ",")
		isName := t.kind == name || t.kind == keyword
		switch {
		case t.nest < 0 && around == ":":
			t.text = strings.ReplaceAll(t.text, "]", ")")
		case t.is("=>", "function", "class") && !next.is(":"):
			return nil, misplaced(t)
		case isKey && (isName || t.kind == text) && strings.Trim(t.text, `'"`) == "__proto__":
			return nil, unknownf("sets a prototype")
		case isKey && isName && next.is("("):
			return nil, unknownf("has a method")
		case isKey && t.kind == name && next.is(",", "}"):
			out = append(out, token{kind: text, text: `"` + t.text + `"`}, token{kind: sign, text: ":"})
		case isKey && isName && next.is(":"):
			t.kind, t.text = text, `"`+t.text+`"`
		case isKey && t.is("..."):
			t.kind, t.text = spread, mapSpread
		case t.is("...") && last.is("[", ","):
			t.kind, t.text = spread, listSpread
		case isKey && t.is("["):
			t.text, around = "(", ":"
		default:
			around = t.text
		}
		switch {
		case t.nest > 0:
			open = append(open, around)
		case t.nest < 0 && len(open) > 0:
			open = open[:len(open)-1]
		}
		out = append(out, t)
	}
	return out, nil
}
