package constant

// JavaScript reads the names that a JavaScript or TypeScript file binds at its
// top level: const, let and var, exported or not, exports.NAME and
// module.exports.NAME. Annotations of TypeScript are passed over.
func JavaScript(src string) Table {
	r := jsReader{scope: newScope()}
	lexer := newJSLexer(src)
	for s, more := lexer.statement(); more; s, more = lexer.statement() {
		r.read(s)
	}
	return r.table
}

type jsReader struct {
	*scope
}

func (r *jsReader) read(s statement) {
	tokens := s.tokens
	if tokens[0].word("export") || tokens[0].word("declare") {
		if tokens = tokens[1:]; len(tokens) == 0 {
			return
		}
	}
	first := tokens[0]
	switch {
	case (first.word("const") || first.word("let") || first.word("var")) && len(tokens) > 1 && !tokens[1].word("enum"):
		for _, part := range declarators(tokens[1:]) {
			r.declare(part, s.cut)
		}
	case first.word("import"):
		r.imports(tokens)
	case first.word("function"), first.word("async"), first.word("class"):
		r.change(bound(tokens[:min(len(tokens), 3)]), first.line, "is defined")
	case isBlock(s):
		r.change(touched(tokens, true), first.line, "is bound or changed in a block")
	default:
		r.other(tokens, s.cut)
	}
}

// declarators divides what follows const at its commas; those within the angle
// brackets of a type divide nothing.
func declarators(tokens []token) [][]token {
	var parts [][]token
	pieces := split(tokens, ",")
	begin, end, open := 0, 0, newAngles()
	for i, piece := range pieces {
		end += len(piece)
		open.pass(piece)
		if open.depth <= 0 || i+1 == len(pieces) {
			parts = append(parts, tokens[begin:end])
			begin, open = end+1, newAngles()
		}
		end++ // the comma
	}
	return parts
}

// angles counts the angle brackets left open in the types of a declarator:
// before its "=", and behind "as" and "satisfies".
type angles struct {
	depth  int
	inType bool
}

func newAngles() angles { return angles{inType: true} }

func (a *angles) pass(tokens []token) {
	for _, t := range tokens {
		switch {
		case t.is("="):
			a.inType = false
		case t.word("as"), t.word("satisfies"):
			a.inType = true
		case !a.inType:
		case t.is("<"):
			a.depth++
		case t.is(">"):
			a.depth--
		case t.is(">>"):
			a.depth -= 2
		}
	}
}

// declare binds NAME = value, NAME: type = value, or what a pattern names.
func (r *jsReader) declare(tokens []token, cut bool) {
	if len(tokens) == 0 {
		return
	}
	parts := split(tokens, "=")
	line := tokens[0].line
	switch {
	case tokens[0].kind != name:
		r.change(targets(parts[0]), line, "is bound by a pattern")
	case len(parts) == 1:
		r.forget(tokens[0].text, line, "has no value where it is declared")
	default:
		r.set(tokens[0].text, line, tokens[len(parts[0])+1:], cut)
	}
}

func (r *jsReader) set(to string, line int, expression []token, cut bool) {
	v, err := r.fold(javaScript, expression)
	if cut {
		err = unknownf("is too long")
	}
	r.bind(to, line, v, err)
}

// imports records what comes from elsewhere.
func (r *jsReader) imports(tokens []token) {
	what, from, found := cutWord(tokens, "from")
	how := "is imported"
	if found && len(from) > 0 {
		how += " from " + from[0].text
	}
	r.change(targets(what[1:]), tokens[0].line, how)
}

// other reads exports.NAME = value, or finds out what a statement changes.
func (r *jsReader) other(tokens []token, cut bool) {
	rest := tokens
	if len(rest) > 2 && rest[0].word("module") && rest[1].is(".") {
		rest = rest[2:]
	}
	if rest[0].word("exports") && len(rest) > 3 {
		switch {
		case rest[1].is(".") && rest[3].is("="):
			r.set(rest[2].text, rest[0].line, rest[4:], cut)
			return
		case rest[1].is("=") && rest[2].is("{"):
			r.exported(rest[3:])
			return
		}
	}
	r.change(touched(tokens, false), tokens[0].line, "is changed")
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
