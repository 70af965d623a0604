package constant

import "strings"

// Python reads the names that a Python file binds at its top level. The bodies
// of functions and classes are passed over; what other blocks bind is unknown.
func Python(src string) Table {
	r := pyReader{scope: newScope()}
	lexer := newPyLexer(src)
	for s, more := lexer.statement(); more; s, more = lexer.statement() {
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
	if s.indented {
		if !r.inDefinition {
			r.change(touched(s.tokens, false), first.line, "is bound or changed in a block")
		}
		return
	}
	r.inDefinition = false
	switch first.text {
	case "@":
		return
	case "def", "class", "async":
		r.inDefinition = true
		if len(s.tokens) > 1 {
			r.change([]string{nameOf(s.tokens[1:])}, first.line, "is defined")
		}
	case "if", "for", "while", "with", "try", "else", "elif", "except", "finally":
		r.change(touched(s.tokens, false), first.line, "is bound or changed in a block")
	case "from", "import":
		r.imports(s.tokens)
	default:
		for _, part := range split(s.tokens, ";") {
			r.simple(part, s.cut)
		}
	}
}

// nameOf is what a definition defines.
func nameOf(tokens []token) string {
	for _, t := range tokens {
		if t.kind == name && t.text != "def" {
			return t.text
		}
	}
	return ""
}

// simple reads an assignment, or finds out what another statement changes.
func (r *pyReader) simple(tokens []token, cut bool) {
	if len(tokens) == 0 {
		return
	}
	to, expression := pyTargets(tokens)
	if len(to) == 0 {
		r.change(touched(tokens, false), tokens[0].line, "is changed")
		return
	}
	v, err := r.fold(python, expression)
	if cut {
		err = unknownf("is too long")
	}
	if err != nil {
		// It may bind more than its first names: A = b.c = 1, A = (B := 1).
		r.change(touched(tokens, false), tokens[0].line, "is changed")
	}
	for i, n := range to {
		r.bind(n, tokens[0].line, v, err)
		if i == 0 && err == nil {
			v, err = r.look(n) // the others share it
		}
	}
}

// pyTargets splits an assignment to one name or several (A = B = 1).
func pyTargets(tokens []token) (names []string, expression []token) {
	for len(tokens) > 1 && tokens[0].kind == name && tokens[1].is("=") {
		names = append(names, tokens[0].text)
		tokens = tokens[2:]
	}
	if len(names) > 0 || len(tokens) < 2 || tokens[0].kind != name || !tokens[1].is(":") {
		return names, tokens
	}
	if parts := split(tokens, "="); len(parts) > 1 { // annotated
		return []string{tokens[0].text}, tokens[len(parts[0])+1:]
	}
	return nil, tokens
}

// imports records what comes from elsewhere.
func (r *pyReader) imports(tokens []token) {
	line := tokens[0].line
	from, names, _ := cutWord(tokens, "import")
	if len(from) < 2 {
		r.change(bound(names), line, "is imported")
		return
	}
	module := make([]string, 0, len(from))
	for _, t := range from[1:] {
		module = append(module, t.text)
	}
	how := "is imported from " + strings.Join(module, "")
	if len(names) == 1 && names[0].is("*") {
		r.forgetAll(line, "may be "+strings.TrimPrefix(how, "is ")) // it may bind anything
		return
	}
	r.change(bound(names), line, how)
}

func cutWord(tokens []token, word string) (before, after []token, found bool) {
	for i, t := range tokens {
		if t.word(word) {
			return tokens[:i], tokens[i+1:], true
		}
	}
	return tokens, nil, false
}
