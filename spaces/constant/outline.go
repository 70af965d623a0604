package constant

import "regexp"

// language is what differs between the languages.
type language struct {
	words     map[string]any // true, None, …
	text      func(written string) (string, error)
	binds     *regexp.Regexp // stands before a name that a statement binds
	changes   *regexp.Regexp // stands behind a name that a statement changes
	blocks    *regexp.Regexp // begins a statement that is a block
	functions *regexp.Regexp // begins a statement whose brackets hold definitions
	nextBinds *regexp.Regexp // stands behind a comma outside brackets that begins another binding
	ends      string         // what ends an expression
	objects   bool           // keys of mappings are names, texts, numbers, or stand in brackets
}

// outline is a source file and, byte for byte, the shape of its statements. The
// shape lacks what stands in texts, comments and the bodies of functions. A
// statement ends with a line or a semicolon.
type outline struct {
	*language
	*patterns
	src   string
	shape []byte
	plain string // the shape
	facts map[string]*fact
	most  int // facts
	left  int // of maxRead
	// unread says why nothing is known.
	unread string
}

// Marks that stand in a shape for something else.
const (
	textBegin, textGoesOn = '"', '\''
	noValue               = '\x01' // what no constant has: functions, regular expressions, …
	innerEquals           = '\x02' // within brackets
	innerEnd              = '\x03' // of a statement in a block
	outerComma            = '\x04' // outside brackets
)

func newOutline(l *language, src string) *outline {
	return &outline{language: l, patterns: compiled(), src: src, shape: []byte(src), facts: map[string]*fact{}, left: maxRead}
}

// hide puts marks in the place of bytes; lines end where they did.
func (o *outline) hide(from, to int, with byte) {
	for i := from; i < to; i++ {
		if with == textGoesOn || o.shape[i] != '\n' {
			o.shape[i] = with
		}
	}
}

func (o *outline) hideText(from, to int) {
	o.hide(from, to, textGoesOn)
	o.shape[from] = textBegin
}

// nest hides what is in brackets and does not concern the top level.
func (o *outline) nest(ends func(start, newline int) bool) {
	depth, body, start, fresh := 0, 0, 0, true // body is the depth in which a function began
	inBlock, inFunction := false, false
	last, before := byte(0), byte(0) // without space
	for i, c := range o.shape {
		if fresh && c > ' ' && c != ';' {
			start, fresh = i, false
			begin := o.shape[i:min(i+window, len(o.shape))]
			inBlock, inFunction = o.objects && o.blocks.Match(begin), o.functions.Match(begin)
		}
		switch {
		case c == '(' || c == '[' || c == '{':
			depth++
			if isBody := c == '{' && (last == ')' || last == '>' && before == '='); body == 0 && (inFunction || isBody && !inBlock) {
				body = depth
			}
		case c == ')' || c == ']' || c == '}':
			if depth == body {
				body = 0
			}
			depth = max(0, depth-1)
		case depth > 0 && inBlock && (c == '\n' || c == ';'):
			o.shape[i] = innerEnd
		case c == '\n' && !fresh && (depth > 0 || !ends(start, i)):
			o.shape[i] = ' '
		case c == '\n', c == ';' && depth == 0:
			fresh = true
		case c == '=' && depth > 0 && !inBlock && last != ':':
			o.shape[i] = innerEquals
		case c == ',' && depth == 0 && o.nextBinds.Match(o.shape[i+1:min(i+window, len(o.shape))]):
			o.shape[i] = outerComma
		}
		if body > 0 && (depth > body || depth == body && c != '(' && c != '[' && c != '{') {
			o.shape[i] = noValue
		}
		if c > ' ' {
			last, before = c, last
		}
	}
	o.plain = string(o.shape)
}
