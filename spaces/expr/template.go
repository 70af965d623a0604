package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Template is text with ${path} in it.
type Template struct {
	parts []part
}

// part is text, or what data take the place of when it has paths.
type part struct {
	text  string // for data: what stands between the braces
	paths []path // the first one that is there counts
}

// ParseTemplate takes text apart. Every text is a template: what is none in it
// stays as it is.
func ParseTemplate(s string) Template {
	var t Template
	text := 0 // where the text behind the last template begins
	for at := 0; ; {
		next := strings.Index(s[at:], "${")
		if next < 0 {
			t.add(part{text: s[text:]})
			return t
		}
		begin := at + next
		at = begin + len("${")
		inside := braced(s[at:])
		paths := alternatives(inside)
		if paths == nil {
			continue
		}
		t.add(part{text: s[text:begin]})
		t.add(part{text: strings.TrimSpace(inside), paths: paths})
		at += len(inside) + len("}")
		text = at
	}
}

// braced is what stands before the first brace of s if that closes, and nothing
// else. It looks no further than the next template may begin: text of nothing but
// beginnings would take hours.
func braced(s string) string {
	if end := strings.IndexAny(s, "${}"); end >= 0 && s[end] == '}' {
		return s[:end]
	}
	return ""
}

func (t *Template) add(p part) {
	if p.text != "" {
		t.parts = append(t.parts, p)
	}
}

// alternatives reads a.b || c.d; it is nil when that is not what stands there.
func alternatives(s string) []path {
	var paths []path
	for one := range strings.SplitSeq(s, "||") {
		one = strings.TrimSpace(one)
		p, ok := parsePath(one)
		if !ok || !lowerCase(p[0]) {
			return nil
		}
		paths = append(paths, p)
	}
	return paths
}

// lowerCase tells the names of data from those of environment variables.
func lowerCase(name string) bool {
	return isLower(name[0]) && !strings.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' })
}

// maxInserted bounds what one call puts in, in bytes of text and elements: a
// template of a few bytes can stand for all the data there are, many times.
const maxInserted = 16 << 20

// expansion puts data into templates.
type expansion struct {
	data    any
	room    int // of maxInserted
	missing []string
}

func newExpansion(data any) *expansion { return &expansion{data: data, room: maxInserted} }

// Expand puts data into the template. A template that is one ${…} and nothing
// else becomes the data themselves, which the result then shares; anything else
// becomes a string. Where none of the paths has data the text is empty, and
// missing has what stood between the braces; so it is when the result would
// become larger than 16 MiB. Null is data: it is passed over for the next path
// and is empty in text.
func (t Template) Expand(data any) (value any, missing []string) {
	e := newExpansion(data)
	return e.template(t), e.missing
}

// Whole reports whether the template is one ${…} and nothing else.
func (t Template) Whole() bool { return len(t.parts) == 1 && t.parts[0].paths != nil }

// Builder makes a text of a template for somebody who must tell its own text from
// what is put in.
type Builder interface {
	Text(text string)
	Value(value string)
}

// Build gives the parts of the template to b in order, with the data as text. It
// returns what the data have nothing for, as [Template.Expand] does.
func (t Template) Build(data any, b Builder) (missing []string) {
	e := newExpansion(data)
	for _, p := range t.parts {
		if p.paths == nil {
			b.Text(p.text)
			continue
		}
		text := ""
		if value, _ := e.part(p); value != nil {
			text = item.Text(value)
		}
		b.Value(text)
	}
	return e.missing
}

func (e *expansion) template(t Template) any {
	if t.Whole() {
		value, found := e.part(t.parts[0])
		if !found {
			return ""
		}
		return value
	}
	var out strings.Builder
	for _, p := range t.parts {
		if p.paths == nil {
			out.WriteString(p.text)
		} else if value, _ := e.part(p); value != nil {
			out.WriteString(item.Text(value))
		}
	}
	return out.String()
}

// part returns the data for a part that is not text.
func (e *expansion) part(p part) (value any, found bool) {
	if value, found = p.in(e.data); found && e.room >= 0 {
		e.room -= weight(value)
	}
	if !found || e.room < 0 {
		e.missing = append(e.missing, p.text)
		return nil, false
	}
	return value, true
}

// weight is the size of data, in bytes of text and elements.
func weight(v any) int {
	sum := 1
	switch v := v.(type) {
	case string:
		sum += len(v)
	case []any:
		for _, element := range v {
			sum += weight(element)
		}
	case map[string]any:
		for key, value := range v {
			sum += len(key) + weight(value)
		}
	}
	return sum
}

// in returns the first data that are there and not null.
func (p part) in(data any) (value any, found bool) {
	for _, one := range p.paths {
		v, ok := one.in(data)
		found = found || ok
		if v != nil {
			return v, true
		}
	}
	return nil, found
}

// ExpandText puts data into text and always returns text.
func ExpandText(s string, data any) (text string, missing []string) {
	value, missing := ParseTemplate(s).Expand(data)
	if value == nil {
		return "", missing
	}
	return item.Text(value), missing
}

// ExpandAll puts data into every string within v, keys of maps excepted, and
// returns the result; v stays as it is.
func ExpandAll(v, data any) (expanded any, missing []string) {
	e := newExpansion(data)
	return e.all(v), e.missing
}

func (e *expansion) all(v any) any {
	switch v := v.(type) {
	case string:
		return e.template(ParseTemplate(v))
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = e.all(element)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = e.all(v[key])
		}
		return out
	}
	return v
}
