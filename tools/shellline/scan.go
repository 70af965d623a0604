package shellline

import "strings"

// Text puts in what the author of the line wrote, and follows its quotes.
func (l *Line) Text(text string) {
	l.out.WriteString(text)
	for i := 0; i < len(text); i++ {
		i += l.read(text[i:])
	}
}

// read takes the first character of text into account and returns how many more
// belong to it.
func (l *Line) read(text string) (more int) {
	c := l.top()
	l.naming = false
	if c.kind == here {
		l.readRows(c.doc, text[:1], false)
		return 0
	}
	if l.escaped {
		l.escaped = false
		l.word = l.word || text[0] != '\n'
		return 0
	}
	dollar := l.dollar
	l.dollar = false
	switch c.kind {
	case single:
		if text[0] == '\'' {
			l.pop()
		}
	case comment:
		if text[0] == '\n' {
			l.pop()
			l.newline()
		}
	case ansi:
		l.readQuoted(text[0], '\'')
	case double:
		return l.readDouble(text, dollar)
	case opaque:
		l.readOpaque(c, text[0])
	default:
		return l.readPlain(text, dollar)
	}
	return 0
}

func (l *Line) readQuoted(b, end byte) {
	switch b {
	case '\\':
		l.escaped = true
	case end:
		l.pop()
		l.word = true
	}
}

func (l *Line) readDouble(text string, dollar bool) (more int) {
	if more, opened := l.readExpansion(text, dollar); opened {
		return more
	}
	l.dollar = text[0] == '$'
	l.readQuoted(text[0], '"')
	return 0
}

// readExpansion opens what begins in the same way within double quotes and
// outside.
func (l *Line) readExpansion(text string, dollar bool) (more int, opened bool) {
	switch {
	case text[0] == '`':
		l.push(context{kind: opaque, end: '`', depth: 1})
	case dollar && text[0] == '{':
		l.push(context{kind: opaque, end: '}', depth: 1})
	case dollar && strings.HasPrefix(text, "(("):
		l.push(context{kind: opaque, end: ')', depth: 2})
		return 1, true
	case dollar && text[0] == '(':
		l.push(context{kind: sub})
		l.word, l.letters = false, ""
	case dollar && text[0] == '[':
		l.push(context{kind: opaque, end: ']', depth: 1})
	default:
		return 0, false
	}
	return 0, true
}

// readOpaque looks for the end only. Quotes within may hide it, or seem to: then
// everything behind is taken for a part of it, in which no value is quoted wrongly.
func (l *Line) readOpaque(c context, b byte) {
	top := &l.stack[len(l.stack)-1]
	switch {
	case b == '\\':
		l.escaped = true
	case b == '\'' || b == '"' || b == '`' && c.end != '`':
		top.depth += lost
	case b == c.end:
		if top.depth--; top.depth == 0 {
			l.pop()
			l.word = true
		}
	case c.end == ')' && b == '(' || c.end == '}' && b == '{':
		top.depth++
	}
}

// lost is a depth that nothing comes back from.
const lost = 1 << 30

func (l *Line) readPlain(text string, dollar bool) (more int) {
	if more, opened := l.readExpansion(text, dollar); opened {
		return more
	}
	b, word := text[0], l.word
	l.word = true
	switch b {
	case '\\':
		l.escaped, l.word = true, word
	case '$':
		l.dollar = true
	case '\'':
		if dollar {
			l.push(context{kind: ansi})
		} else {
			l.push(context{kind: single})
		}
	case '"':
		l.push(context{kind: double})
	case '#':
		if !word {
			l.push(context{kind: comment})
		}
	case '<':
		return l.readLess(text)
	case '(', ')', ' ', '\t', '\n', ';', '&', '|', '>':
		l.endWord(text)
		return 0
	}
	l.letters += string(b)
	return 0
}

// endWord deals with what ends a word, of which the next one may begin.
func (l *Line) endWord(text string) {
	// The patterns of case have closing parentheses without opening ones.
	if l.letters == "case" && len(l.stack) > 0 {
		l.push(context{kind: opaque, end: 0, depth: lost})
	}
	l.word, l.letters = false, ""
	switch text[0] {
	case '(':
		if strings.HasPrefix(text, "((") {
			l.push(context{kind: opaque, end: ')', depth: 1}) // the second one is read next
			return
		}
		l.push(context{kind: sub})
	case ')':
		if len(l.stack) > 0 {
			l.pop()
			l.word = true
		}
	case '\n':
		l.newline()
	}
}

// readLess deals with < and, where it is <<, with the end of the heredoc that
// begins.
func (l *Line) readLess(text string) (more int) {
	l.word, l.letters = false, ""
	if !strings.HasPrefix(text, "<<") {
		return 0
	}
	if strings.HasPrefix(text, "<<<") {
		return 2
	}
	rest := text[2:]
	doc := heredoc{tabs: strings.HasPrefix(rest, "-")}
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "-"), " \t")
	n := strings.IndexAny(rest, " \t\n;&|<>()")
	if n < 0 {
		n = len(rest)
	}
	doc.end = strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(rest[:n])
	doc.literal = doc.end != rest[:n]
	l.waiting = append(l.waiting, doc)
	l.naming = true
	return len(text) - len(rest) + n - 1
}

// newline begins a row: the text of a heredoc, if one was announced.
func (l *Line) newline() {
	l.word, l.letters = false, ""
	for i := len(l.waiting) - 1; i >= 0; i-- { // the first one is read first
		l.push(context{kind: here, doc: l.waiting[i]})
	}
	l.waiting = nil
	l.row = row{}
}

// readRows follows the text of a heredoc to its end.
func (l *Line) readRows(doc heredoc, text string, value bool) {
	l.row.value = l.row.value || value
	for i := range len(text) {
		if b := text[i]; b != '\n' {
			l.row.lost = l.row.lost || !value && (b == '`' || l.row.after == '$' && (b == '(' || b == '{' || b == '['))
			l.row.after = b
			l.row.text.WriteByte(b)
			continue
		}
		written := l.row.text.String()
		if doc.tabs {
			written = strings.TrimLeft(written, "\t")
		}
		if written == doc.end {
			if l.row.value {
				l.fail("it would end the heredoc that it stands in")
			}
			l.pop()
		}
		l.row = row{value: value && i+1 < len(text), lost: l.row.lost && written != doc.end}
	}
}
