package constant

import (
	"slices"
	"strings"
)

// python is how Python writes values.
var python = &language{
	words: map[string]any{"True": true, "False": false, "None": nil},
	text:  pyText, number: pyNumber,
	adjacent: true, tuples: true, addLists: true,
}

// Python reads the names that a Python file binds at its top level. The bodies
// of functions and classes are passed over; what other blocks bind is unknown.
func Python(src string) Table {
	r := pyReader{scope: newScope()}
	p := pySplitter{src: strings.ReplaceAll(src, "\r\n", "\n"), line: 1}
	for s := p.statement(); len(s.tokens) > 0; s = p.statement() {
		r.read(s)
	}
	return r.table
}

type pyReader struct {
	*scope
	inDefinition bool // of a function or class
}

func (r *pyReader) read(s statement) {
	first := s.tokens[0]
	switch {
	case s.indented && r.inDefinition:
		return
	case s.indented, first.is("if", "for", "while", "with", "try", "else", "elif", "except", "finally"):
		r.change(touched(s.tokens, false), first.line, inBlock)
	case first.is("def", "class", "async"):
		r.change(touched(s.tokens[:min(3, len(s.tokens))], false), first.line, "is defined")
	case first.is("@"):
	default:
		for _, part := range split(s.tokens, ";") {
			r.simple(part, s.cut)
		}
	}
	if !s.indented {
		r.inDefinition = first.is("def", "class", "async")
	}
}

// simple reads an assignment, or finds out what another statement changes.
func (r *pyReader) simple(tokens []token, cut bool) {
	to, expression := pyTargets(tokens)
	switch {
	case len(tokens) == 0:
		return
	case tokens[0].is("from", "import"):
		r.imports(tokens)
		return
	case len(to) == 0:
		r.change(touched(tokens, false), tokens[0].line, changed)
		return
	}
	v, err := r.fold(python, pySpreads(expression))
	if cut {
		err = errTooLong
	}
	if err != nil {
		// It may bind more than its first names: A = b.c = 1, A = (B := 1).
		r.change(touched(tokens, false), tokens[0].line, changed)
	}
	for i, n := range to {
		r.bind(n, tokens[0].line, v, err)
		if i == 0 && err == nil {
			v, err = r.look(n) // the others share it
		}
	}
}

// pyTargets splits an assignment to one name or several (A = B = 1).
func pyTargets(tokens []token) (to []string, expression []token) {
	for len(tokens) > 1 && tokens[0].kind == name && tokens[1].is("=") {
		to = append(to, tokens[0].text)
		tokens = tokens[2:]
	}
	if len(to) > 0 || len(tokens) < 2 || tokens[0].kind != name || !tokens[1].is(":") {
		return to, tokens
	}
	if parts := split(tokens, "="); len(parts) > 1 { // annotated
		return names(tokens[:1]), tokens[len(parts[0])+1:]
	}
	return nil, tokens
}

// imports records what comes from elsewhere.
func (r *pyReader) imports(tokens []token) {
	line, how := tokens[0].line, "is imported"
	i := slices.IndexFunc(tokens, func(t token) bool { return t.is("import") })
	if i > 1 {
		how += " from " + join(tokens[1:i], "")
	}
	if i >= 0 && i+2 == len(tokens) && tokens[i+1].is("*") {
		r.forgetAll(line, "may be "+strings.TrimPrefix(how, "is ")) // it may bind anything
		return
	}
	r.change(names(tokens[max(0, i):]), line, how)
}

// pySpreads marks what is spread.
func pySpreads(tokens []token) []token {
	tokens = slices.Clone(tokens)
	for i := range tokens {
		t, last := &tokens[i], token{kind: sign, text: ","}
		if i > 0 {
			last = tokens[i-1]
		}
		switch {
		case t.is("*") && last.is(",", "(", "["):
			t.kind, t.text = spread, listSpread
		case t.is("**") && last.is(",", "{"):
			t.kind, t.text = spread, mapSpread
		}
	}
	return tokens
}
