package shellline

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// ErrPlace says that a value cannot be put where it is to stand.
var ErrPlace = errors.New("a value cannot be put there")

// Line is a command line that is being put together. The zero value is ready.
type Line struct {
	out   strings.Builder
	stack []context // the innermost is the last; none: the line itself
	err   error

	escaped bool // a backslash stands before the next character
	dollar  bool // a dollar sign does
	word    bool // the next character continues a word
	naming  bool // the next character continues the name of a heredoc's end
	letters string

	waiting []heredoc // whose text begins on the next line
	row     row       // of the heredoc that is read
}

// kind is what the text at a place means to the shell.
type kind int

const (
	plain   kind = iota
	single       // '…'
	ansi         // $'…'
	double       // "…"
	comment      // to the end of the row
	sub          // $(…) and (…)
	opaque       // what is not followed further: backquotes, ${…}, arithmetic
	here         // the text of a heredoc
)

type context struct {
	kind  kind
	end   byte // of opaque, which ends when depth is 0
	depth int
	doc   heredoc
}

// heredoc is one whose text is to come, or is read.
type heredoc struct {
	end     string
	literal bool // its delimiter was quoted
	tabs    bool // <<-: tabs before the rows do not count
}

// row is the one of a heredoc that is being read.
type row struct {
	text  strings.Builder
	value bool // part of it is a value
	lost  bool // it, or a row before, has a command or a variable with braces in it
	after byte // the character before
}

func (l *Line) top() context {
	if len(l.stack) == 0 {
		return context{kind: plain}
	}
	return l.stack[len(l.stack)-1]
}

func (l *Line) push(c context) { l.stack = append(l.stack, c) }
func (l *Line) pop()           { l.stack = l.stack[:len(l.stack)-1] }

// Finish returns the line, or the first reason why a value could not be put in.
func (l *Line) Finish() (string, error) {
	if l.err != nil {
		return "", l.err
	}
	return l.out.String(), nil
}

// inert values mean nothing to the shell wherever they stand.
var inert = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@:,+-]*$`) })

var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`) })

// Value puts in a value.
func (l *Line) Value(value string) {
	c := l.top()
	var problem string
	switch {
	case strings.ContainsRune(value, 0):
		problem = "it has a NUL byte"
	case l.escaped:
		problem = "a backslash stands before it"
	case l.dollar && c.kind != single && c.kind != comment:
		problem = "a dollar sign stands before it"
	case l.naming:
		problem = "it would name the end of a heredoc"
	}
	if problem != "" {
		l.fail(problem)
		return
	}
	quoted, problem := l.quoted(c, value)
	if problem != "" {
		l.fail(problem)
		return
	}
	l.out.WriteString(quoted)
	if c.kind == here {
		l.readRows(c.doc, value, true)
	}
	l.word, l.letters = true, "-" // part of a word that is no name of a command
}

func (l *Line) quoted(c context, value string) (quoted, problem string) {
	switch c.kind {
	case single:
		return strings.ReplaceAll(value, `'`, `'\''`), ""
	case double:
		return escape(value, "\\$`\""), ""
	case comment:
		return strings.NewReplacer("\n", " ", "\r", " ").Replace(value), ""
	case here:
		if c.doc.literal {
			return value, ""
		}
		if l.row.after == '\\' || l.row.after == '$' {
			return "", "a backslash or a dollar sign stands before it"
		}
		if l.row.lost && !inert().MatchString(value) {
			return "", "the heredoc has commands in it; set a variable before it, and use that"
		}
		return escape(value, "\\$`"), ""
	case ansi: // so that it ends there for shells that do not know $'
		return strings.ReplaceAll(strings.ReplaceAll(value, `\`, `\\`), `'`, `'\'$'`), ""
	case opaque:
		if c.end == ')' && !number().MatchString(value) {
			return "", "it would be part of arithmetic, which takes numbers only"
		}
		if !inert().MatchString(value) {
			return "", "it would stand in backquotes or within ${…}; use $(…), and double quotes around the value"
		}
		return value, ""
	default:
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", ""
	}
}

func (l *Line) fail(problem string) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: %s", ErrPlace, problem)
	}
}

func escape(value, special string) string {
	var b strings.Builder
	for i := range len(value) {
		if strings.IndexByte(special, value[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// Words puts in several values: each as a word of its own, and within quotes as one
// text with blanks between them.
func (l *Line) Words(values []string) {
	switch l.top().kind {
	case plain, sub:
		for i, value := range values {
			if i > 0 {
				l.Text(" ")
			}
			l.Value(value)
		}
	default:
		l.Value(strings.Join(values, " "))
	}
}
