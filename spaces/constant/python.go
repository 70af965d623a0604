package constant

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// python is how Python writes values.
var python = sync.OnceValue(func() *language {
	return &language{
		words:     map[string]any{"True": true, "False": false, "None": nil},
		text:      pyText,
		binds:     regexp.MustCompile(`^\s*(?:[A-Za-z_]\w*\s*=\s*)*$`),
		changes:   changesBehind(string(rune(outerComma))),
		blocks:    regexp.MustCompile(`^(?:if|for|while|with|try|else|elif|except|finally|match|async|class|def)\b`),
		functions: regexp.MustCompile(`^\x00`), // their bodies are indented
		nextBinds: regexp.MustCompile(``),
		ends:      "\n;",
	}
})

// Python reads names that a Python file binds at its top level. The bodies of
// functions and classes are passed over; what other blocks bind is unknown. A
// name that the file says nothing about is left out.
func Python(src string, names ...string) map[string]Constant {
	o := newOutline(python(), strings.ReplaceAll(src, "\r\n", "\n"))
	for at := 0; at < len(o.src); {
		c, size := o.src[at], 1
		switch {
		case c == '#':
			size = len(o.src[at:])
			if line := strings.IndexByte(o.src[at:], '\n'); line >= 0 {
				size = line
			}
			o.hide(at, at+size, ' ')
		case c == '"' || c == '\'':
			var closed bool
			if size, closed = pyQuoted(o.src[at:]); closed {
				o.hideText(at-pyPrefix(o.src[max(0, at-3):at]), at+size)
			} else {
				o.hide(at, at+size, noValue)
			}
		case c == '\\' && strings.HasPrefix(o.src[at:], "\\\n"):
			size = 2
			copy(o.shape[at:], "  ")
		case c < ' ' && c != '\n' && c != '\t': // form feeds, and marks of a shape
			o.shape[at] = ' '
		}
		at += size
	}
	o.nest(func(int, int) bool { return true })
	o.hideDefinitions()
	return o.constants(names)
}

// pyPrefix is the size of what makes a text behind it one of another kind: r"…".
func pyPrefix(before string) int {
	bare := strings.TrimRight(before, "rRuUbBfFtT")
	if size := len(before) - len(bare); size <= 2 && (bare == "" || !isWord(bare[len(bare)-1])) {
		return size
	}
	return 0
}

// hideDefinitions hides the bodies of functions and classes.
func (o *outline) hideDefinitions() {
	inDefinition := false
	for at := 0; at < len(o.plain); {
		size := strings.IndexByte(o.plain[at:], '\n') + 1
		if size == 0 {
			size = len(o.plain) - at
		}
		line := o.plain[at : at+size]
		switch {
		case strings.TrimSpace(line) == "":
		case line[0] != ' ' && line[0] != '\t':
			word, _, _ := strings.Cut(line[:min(len(line), 6)], " ")
			inDefinition = slices.Contains([]string{"def", "class", "async"}, word)
		case inDefinition:
			o.hide(at, at+size, ' ')
		}
		if begin := strings.IndexAny(line, "(:"); begin >= 0 && inDefinition {
			o.hide(at+begin, at+size, ' ')
		}
		at += size
	}
	o.plain = string(o.shape)
}

// pyQuoted returns the size of the text that src begins with.
func pyQuoted(src string) (size int, closed bool) {
	quote := src[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(src, triple) {
		quote = triple
	}
	for at := len(quote); at < len(src); at++ {
		switch {
		case strings.HasPrefix(src[at:], quote):
			return at + len(quote), true
		case src[at] == '\n' && len(quote) == 1:
			return at, false
		case src[at] == '\\':
			at++ // what it escapes
		}
	}
	return len(src), false
}
