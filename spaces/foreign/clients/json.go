package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"github.com/tidwall/jsonc"
)

// mark is the byte order mark that editors of Windows put first.
const mark = "\xef\xbb\xbf"

// decodeJSON reads a configuration in JSON, with comments and trailing commas unless it
// is strict. One that is empty or null has nothing in it.
func decodeJSON(content []byte, strict bool) (map[string]any, error) {
	if len(content) > maxJSON {
		return nil, &SyntaxError{Err: fmt.Errorf("it has more than %d MiB", maxJSON>>20)}
	}
	body := bytes.TrimPrefix(content, []byte(mark))
	if !strict {
		body = jsonc.ToJSON(body) // of the same length
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]any{}, nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	if err == nil {
		if _, next := decoder.Token(); !errors.Is(next, io.EOF) {
			err = errors.New("something follows the end of the object")
		}
	}
	if err != nil {
		return nil, syntaxError(content, len(content)-len(body), decoder.InputOffset(), err)
	}
	switch value := value.(type) {
	case map[string]any:
		return value, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, &ShapeError{Line: 1, At: "the whole of it", Is: kindOf(value)}
}

// syntaxError says where JSON is wrong. Shift is what was left out before it.
func syntaxError(content []byte, shift int, reached int64, err error) error {
	at := shift + int(reached)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = shift + int(syntax.Offset) - 1
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = len(content), errors.New("it ends too early")
	}
	line, column := lineAt(content, at)
	return &SyntaxError{Line: line, Column: column, Err: err}
}

// parsed is a configuration with the places of all values.
type parsed struct {
	content []byte
	shift   int // of the byte order mark
	root    *hujson.Object
	end     int // of the root
	nl      string
	unit    string // one step of indentation
	edits   []splice
}

func parseJSON(content []byte) (*parsed, error) {
	p := &parsed{content: content, nl: newline(content), unit: "  "}
	if bytes.HasPrefix(content, []byte(mark)) {
		p.shift = len(mark)
	}
	value, err := hujson.Parse(append(slices.Clone(content[p.shift:]), '\n')) // which it wants behind a comment
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrByHand, err)
	}
	root, ok := value.Value.(*hujson.Object)
	if !ok {
		return nil, ErrByHand
	}
	p.root, p.end = root, value.EndOffset
	if indent, multi := indentOf(root); multi && indent != "" {
		p.unit = indent
	}
	return p, nil
}

// indentOf is the indentation of the members of an object, if they have lines of their
// own.
func indentOf(o *hujson.Object) (string, bool) {
	if len(o.Members) == 0 {
		return "", false
	}
	before := o.Members[0].Name.BeforeExtra
	at := bytes.LastIndexByte(before, '\n')
	if at < 0 {
		return "", false
	}
	rest := before[at+1:]
	return string(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))]), true
}

// nameOf is the key of a member.
func nameOf(m hujson.ObjectMember) string {
	if name, ok := m.Name.Value.(hujson.Literal); ok {
		return name.String()
	}
	return ""
}

// indexOf is where a key stands, -1 where it does not. Of several the last one counts.
func indexOf(o *hujson.Object, key string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if nameOf(o.Members[i]) == key {
			return i
		}
	}
	return -1
}

// locateJSON is the text of an entry, and its line.
func locateJSON(content []byte, keys []string, name string) (string, int) {
	p, err := parseJSON(content)
	if err != nil {
		return "", 0
	}
	o := p.root
	for _, key := range append(slices.Clone(keys), name) {
		i := indexOf(o, key)
		if i < 0 {
			return "", 0
		}
		m := o.Members[i]
		from, to := p.shift+m.Name.StartOffset, p.shift+m.Value.EndOffset
		inner, ok := m.Value.Value.(*hujson.Object)
		if key == name || !ok {
			line, _ := lineAt(content, from)
			return string(content[from:to]), line
		}
		o = inner
	}
	return "", 0
}

// editJSON puts an entry into a configuration that has been decoded.
func editJSON(content []byte, keys []string, name string, members []member, replace bool) ([]byte, error) {
	nested := []member{{key: name, value: members}}
	for _, key := range slices.Backward(keys) {
		nested = []member{{key: key, value: nested}}
	}
	body := bytes.TrimPrefix(content, []byte(mark))
	if empty := bytes.TrimSpace(jsonc.ToJSON(body)); len(empty) == 0 || string(empty) == "null" {
		return withoutBody(content, nested)
	}
	p, err := parseJSON(content)
	if err != nil {
		return nil, err
	}
	p.merge(place{object: p.root, end: p.end}, nested, replace)
	return spliced(content, p.edits), nil
}

// withoutBody writes an object into a configuration that has none, behind its comments.
func withoutBody(content []byte, members []member) ([]byte, error) {
	p := &parsed{content: content, nl: newline(content), unit: "  "}
	text := p.text(members, "", true)
	body := jsonc.ToJSON(bytes.TrimPrefix(content, []byte(mark)))
	if at := bytes.Index(body, []byte("null")); at >= 0 {
		at += len(content) - len(body)
		return spliced(content, []splice{{at, at + len("null"), text}}), nil
	}
	if rest := bytes.TrimRight(content, " \t\r\n"); len(bytes.TrimPrefix(rest, []byte(mark))) > 0 {
		return append(append(slices.Clone(rest), p.nl...), text+p.nl...), nil // comments
	}
	prefix := ""
	if bytes.HasPrefix(content, []byte(mark)) {
		prefix = mark
	}
	return []byte(prefix + text + p.nl), nil
}

// place is an object, where it ends, and the indentation of the line that it begins in.
type place struct {
	object *hujson.Object
	end    int
	indent string
}

// merge makes members of an object what they should be. Those that are not there come
// last. With replace the innermost entry is written anew.
func (p *parsed) merge(at place, members []member, replace bool) {
	var missing []member
	for _, m := range members {
		i := indexOf(at.object, m.key)
		if i < 0 {
			missing = append(missing, m)
			continue
		}
		value := at.object.Members[i].Value
		inner, isObject := value.Value.(*hujson.Object)
		wanted, wantsObject := m.value.([]member)
		indent, multi := p.memberIndent(at)
		leaf := wantsObject && slices.ContainsFunc(wanted, func(w member) bool { return w.key == "command" })
		switch {
		case wantsObject && isObject && (!replace || !leaf):
			p.merge(place{inner, value.EndOffset, indent}, wanted, replace)
		case m.tuned, !wantsObject && sameJSON(value, m.value):
		default:
			p.splice(value.StartOffset, value.EndOffset, p.text(m.value, indent, multi))
		}
	}
	if len(missing) > 0 {
		p.insert(at, missing)
	}
}

// sameJSON reports whether a value is what is wanted already.
func sameJSON(value hujson.Value, wanted any) bool {
	value = value.Clone()
	value.Standardize()
	var is, want any
	text, err := json.Marshal(wanted)
	return err == nil && json.Unmarshal(value.Pack(), &is) == nil && json.Unmarshal(text, &want) == nil && equal(is, want)
}

// memberIndent is the indentation that a member of an object gets, and whether it stands
// on a line of its own.
func (p *parsed) memberIndent(at place) (string, bool) {
	if indent, multi := indentOf(at.object); multi {
		return indent, true
	}
	extra := p.extra(at)
	multi := bytes.ContainsRune(extra, '\n') ||
		len(at.object.Members) == 0 && (len(p.root.Members) == 0 || bytes.ContainsRune(p.content, '\n'))
	return at.indent + p.unit, multi
}

// extra is what stands between the last member, or the opening brace, and the closing
// brace: comments and blanks.
func (p *parsed) extra(at place) []byte {
	end := p.shift + at.end - 1
	return p.content[end-len(at.object.AfterExtra) : end]
}

// insert writes members behind the last one of an object, and behind its comments.
func (p *parsed) insert(at place, members []member) {
	indent, multi := p.memberIndent(at)
	extra := p.extra(at)
	used := len(bytes.TrimRight(extra, " \t\r\n"))
	from := at.end - 1 - len(extra) + used

	separator, spaced := "", false
	if len(at.object.Members) > 0 {
		last := at.object.Members[len(at.object.Members)-1].Value
		if last.AfterExtra == nil {
			p.splice(last.EndOffset, last.EndOffset, ",")
		}
		if spaced = len(last.BeforeExtra) > 0; spaced {
			separator = " "
		}
	}
	if multi {
		separator = p.nl + indent
	}
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = quoted(m.key) + colon(multi || spaced) + p.text(m.value, indent, multi)
	}
	text := separator + strings.Join(texts, ","+separator)
	switch n := len(at.object.Members); {
	case n > 0 && at.object.Members[n-1].Value.AfterExtra != nil:
		text += "," // as the one before has one
	case n == 0 && multi && !bytes.ContainsRune(extra[used:], '\n'):
		text += p.nl + at.indent
	}
	p.splice(from, from, text)
}

func colon(spaced bool) string {
	if spaced {
		return ": "
	}
	return ":"
}

// splice takes offsets without the byte order mark.
func (p *parsed) splice(from, to int, text string) {
	p.edits = append(p.edits, splice{p.shift + from, p.shift + to, text})
}

// text writes a value. Objects have a line for each member where they may.
func (p *parsed) text(value any, indent string, multi bool) string {
	members, ok := value.([]member)
	if !ok {
		if list, ok := value.([]string); ok {
			all := make([]string, len(list))
			for i, text := range list {
				all[i] = quoted(text)
			}
			return "[" + strings.Join(all, ", ") + "]"
		}
		return quoted(value)
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		if multi {
			b.WriteString(p.nl + indent + p.unit)
		}
		b.WriteString(quoted(m.key) + colon(multi) + p.text(m.value, indent+p.unit, multi))
	}
	if multi {
		b.WriteString(p.nl + indent)
	}
	b.WriteByte('}')
	return b.String()
}

// quoted is a value in JSON, without escapes that only matter in HTML.
func quoted(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "null" // entries are made of texts and numbers
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// takeJSON takes an entry out of a configuration that has been decoded, and the tables
// that are empty then.
func takeJSON(content []byte, keys []string, name string) ([]byte, error) {
	p, err := parseJSON(content)
	if err != nil {
		return nil, err
	}
	path := []place{{object: p.root, end: p.end}}
	for _, key := range keys {
		at := path[len(path)-1].object
		i := indexOf(at, key)
		if i < 0 {
			return nil, ErrByHand
		}
		inner, ok := at.Members[i].Value.Value.(*hujson.Object)
		if !ok {
			return nil, ErrByHand
		}
		path = append(path, place{object: inner, end: at.Members[i].Value.EndOffset})
	}
	depth := len(keys)
	for depth > 0 && len(path[depth].object.Members) == 1 && !hasComments(path[depth].object) {
		name, depth = keys[depth-1], depth-1
	}
	i := indexOf(path[depth].object, name)
	if i < 0 {
		return nil, ErrByHand
	}
	p.remove(path[depth], i)
	return spliced(content, p.edits), nil
}

// hasComments reports whether something would be lost with an object of one member.
func hasComments(o *hujson.Object) bool {
	m := o.Members[0]
	for _, extra := range []hujson.Extra{m.Name.BeforeExtra, m.Value.AfterExtra, o.AfterExtra} {
		if len(bytes.TrimSpace(extra)) > 0 {
			return true
		}
	}
	return false
}

// remove takes a member out, with one comma and the blanks before it.
func (p *parsed) remove(at place, i int) {
	o := at.object
	m := o.Members[i]
	before := m.Name.BeforeExtra
	kept := bytes.TrimRight(before, " \t\r\n")
	from, to := m.Name.StartOffset-(len(before)-len(kept)), m.Value.EndOffset
	last := i == len(o.Members)-1
	comma := !last || m.Value.AfterExtra != nil // behind it
	if comma {
		to += len(m.Value.AfterExtra) + 1
	}
	if endsInComment(kept) && !p.lineFollows(to) {
		from = m.Name.StartOffset // the line of the comment has to end
	}
	p.splice(from, to, "")
	switch {
	case i > 0 && last && !comma:
		before := o.Members[i-1].Value
		at := before.EndOffset + len(before.AfterExtra)
		p.splice(at, at+1, "")
	case len(o.Members) == 1 && len(bytes.TrimSpace(append(slices.Clone(kept), p.extra(at)...))) == 0:
		p.splice(to, at.end-1, "") // {} is left
	}
}

// endsInComment reports whether what follows would belong to a comment.
func endsInComment(extra []byte) bool {
	line := extra[bytes.LastIndexByte(extra, '\n')+1:]
	return bytes.Contains(line, []byte("//"))
}

// lineFollows reports whether a line ends at a place, blanks apart.
func (p *parsed) lineFollows(at int) bool {
	rest := bytes.TrimLeft(p.content[p.shift+at:], " \t\r")
	return len(rest) > 0 && rest[0] == '\n'
}
