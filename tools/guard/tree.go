package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// kind is what a node of a JSON text is.
type kind byte

const (
	leaf kind = iota
	text
	list
	object
)

// node is a JSON value whose keys keep their order.
type node struct {
	kind kind
	raw  string // of a leaf, as it is written; of a text, its content
	keys []string
	kids []node
}

// parse reads a JSON text that is a list or an object; false for any other.
func parse(src string) (node, bool) {
	if !json.Valid([]byte(src)) { // bounds how deep it is, too
		return node{}, false
	}
	dec := json.NewDecoder(strings.NewReader(src))
	dec.UseNumber()
	n, err := read(dec)
	return n, err == nil && (n.kind == list || n.kind == object)
}

func read(dec *json.Decoder) (node, error) {
	token, err := dec.Token()
	if err != nil {
		return node{}, err
	}
	switch v := token.(type) {
	case string:
		return node{kind: text, raw: v}, nil
	case json.Delim:
		return readMembers(dec, v == '{')
	case json.Number:
		return node{raw: v.String()}, nil
	case bool:
		return node{raw: fmt.Sprint(v)}, nil
	default:
		return node{raw: "null"}, nil
	}
}

// readMembers reads up to the bracket that closes a list or an object.
func readMembers(dec *json.Decoder, keyed bool) (node, error) {
	n := node{kind: list}
	if keyed {
		n.kind = object
	}
	for dec.More() {
		if keyed {
			key, err := dec.Token()
			if err != nil {
				return n, err
			}
			n.keys = append(n.keys, fmt.Sprint(key))
		}
		kid, err := read(dec)
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, kid)
	}
	_, err := dec.Token()
	return n, err
}

// mapStrings is n with f applied to each of its texts.
func (n node) mapStrings(f func(string) string) node {
	if n.kind == text {
		n.raw = f(n.raw)
	}
	kids := make([]node, len(n.kids))
	for i, kid := range n.kids {
		kids[i] = kid.mapStrings(f)
	}
	n.kids = kids
	return n
}

func (n node) String() string {
	w := writer{most: -1}
	w.value(n, shape{text: -1, members: -1})
	return w.String()
}

// noteKey is the member that says that an object was shortened.
const noteKey = "_shortened"

// The loosest shape that is tried has a share of the bound for each text and as
// many members; each next one has three quarters of it, down to the least.
const (
	leastText    = 12
	leastMembers = 2
)

// within is n as JSON within most characters, in the loosest shape that fits,
// with the note as its last member. All keys of the top are there. False when
// even the tightest shape does not fit.
func (n node) within(most int, note string) (string, bool) {
	for s := (shape{text: most, members: most / 4}); ; s = s.tighter() {
		w := writer{most: most}
		w.top(n, s, note)
		if !w.full() {
			return w.String(), true
		}
		if s.text == leastText && s.members == leastMembers {
			return "", false
		}
	}
}

// shape bounds the parts of a summary; a negative number is no bound.
type shape struct {
	text    int // characters of one text
	members int // of one list, and of one object below the top
}

func (s shape) tighter() shape {
	return shape{text: max(leastText, s.text*3/4), members: max(leastMembers, s.members*3/4)}
}

// writer writes JSON until it is full.
type writer struct {
	strings.Builder
	size int // characters so far
	most int // of them; negative: no bound
}

func (w *writer) full() bool { return w.most >= 0 && w.size > w.most }

func (w *writer) put(s string) {
	if !w.full() {
		w.WriteString(s)
		w.size += utf8.RuneCountInString(s)
	}
}

func (w *writer) quote(s string) { w.put(quoted(s)) }

// quoted is s as JSON, without the escapes that only HTML needs.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// top writes the outermost value with all its keys, and the note behind them.
func (w *writer) top(n node, s shape, note string) {
	if n.kind == list {
		w.put("[")
		w.elements(n, s)
		if len(n.kids) > 0 {
			w.put(",")
		}
		w.quote(note)
		w.put("]")
		return
	}
	w.put("{")
	for i, kid := range n.kids {
		if w.full() {
			return
		}
		w.member(n.keys[i], kid, s)
		w.put(",")
	}
	w.quote(noteKey)
	w.put(":")
	w.quote(note)
	w.put("}")
}

func (w *writer) value(n node, s shape) {
	switch n.kind {
	case text:
		if s.text >= 0 {
			n.raw = cut(n.raw, s.text)
		}
		w.quote(n.raw)
	case list:
		w.put("[")
		w.elements(n, s)
		w.put("]")
	case object:
		w.put("{")
		w.members(n, s)
		w.put("}")
	default:
		w.put(n.raw)
	}
}

// elements writes what is shown of a list: its first and its last elements.
func (w *writer) elements(n node, s shape) {
	count := len(n.kids)
	head, tail := count, count
	if s.members >= 0 && count > s.members {
		head = (s.members*2 + 2) / 3
		tail = count - (s.members - head)
	}
	for i := 0; i < count && !w.full(); i++ {
		if i > 0 {
			w.put(",")
		}
		if i == head && i < tail {
			w.quote(fmt.Sprintf("… [%d of %d elements left out] …", tail-head, count))
			if i = tail; i < count {
				w.put(",")
			}
		}
		if i < count {
			w.value(n.kids[i], s)
		}
	}
}

// members writes what is shown of an object below the top: its first members.
func (w *writer) members(n node, s shape) {
	for i, kid := range n.kids {
		if w.full() {
			return
		}
		if i > 0 {
			w.put(",")
		}
		if i == s.members {
			w.quote("…")
			w.put(":")
			w.quote(fmt.Sprintf("%d of %d members left out", len(n.kids)-i, len(n.kids)))
			return
		}
		w.member(n.keys[i], kid, s)
	}
}

func (w *writer) member(key string, value node, s shape) {
	w.quote(key)
	w.put(":")
	w.value(value, s)
}
