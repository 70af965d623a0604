package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// node is a JSON value whose members keep their order.
type node struct {
	open byte   // '{', '[', '"' for a text, or 0 for any other value
	raw  string // of a text its content, of any other value what is written
	keys []string
	kids []*node
}

// parseTree reads one JSON value.
func parseTree(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return readNode(dec)
}

func readNode(dec *json.Decoder) (*node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case string:
		return textNode(v), nil
	case json.Delim:
		return readMembers(dec, byte(v))
	case nil:
		return &node{raw: "null"}, nil
	default:
		return &node{raw: fmt.Sprint(v)}, nil
	}
}

// readMembers reads up to the bracket that closes what open has opened.
func readMembers(dec *json.Decoder, open byte) (*node, error) {
	n := &node{open: open}
	for dec.More() {
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			n.keys = append(n.keys, fmt.Sprint(key))
		}
		kid, err := readNode(dec)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	_, err := dec.Token()
	return n, err
}

func textNode(s string) *node { return &node{open: '"', raw: s} }

// nodeOf is what v is in JSON.
func nodeOf(v any) (*node, error) {
	data, err := encode(v)
	if err != nil {
		return nil, err
	}
	return parseTree(data)
}

// insert puts a member at a place of an object.
func (n *node) insert(at int, key string, value *node) {
	at = min(at, len(n.kids))
	n.keys = append(n.keys[:at:at], append([]string{key}, n.keys[at:]...)...)
	n.kids = append(n.kids[:at:at], append([]*node{value}, n.kids[at:]...)...)
}

// remove takes a member or an element away.
func (n *node) remove(at int) {
	if n.open == '{' {
		n.keys = append(n.keys[:at:at], n.keys[at+1:]...)
	}
	n.kids = append(n.kids[:at:at], n.kids[at+1:]...)
}

// member is the value of a member of an object; nil without one.
func (n *node) member(key string) *node {
	if i := slices.Index(n.keys, key); i >= 0 {
		return n.kids[i]
	}
	return nil
}

// removeAll takes the members of some names away.
func (n *node) removeAll(keys ...string) {
	for _, key := range keys {
		if i := slices.Index(n.keys, key); i >= 0 {
			n.remove(i)
		}
	}
}

// name is the key of a member, or the number of an element.
func (n *node) name(at int) string {
	if n.open == '{' {
		return n.keys[at]
	}
	return fmt.Sprint(at)
}

// has reports whether a value is another or within it.
func (n *node) has(other *node) bool {
	return n == other || slices.ContainsFunc(n.kids, func(kid *node) bool { return kid.has(other) })
}

// JSON is the value as it is sent.
func (n *node) JSON() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *node) write(b *bytes.Buffer) {
	switch n.open {
	case '"':
		writeText(b, n.raw)
	case '{', '[':
		b.WriteByte(n.open)
		for i, kid := range n.kids {
			if i > 0 {
				b.WriteByte(',')
			}
			if n.open == '{' {
				writeText(b, n.keys[i])
				b.WriteByte(':')
			}
			kid.write(b)
		}
		b.WriteByte(n.open + 2) // } and ] are two behind { and [
	default:
		b.WriteString(n.raw)
	}
}

// size is how many bytes [node.JSON] has.
func (n *node) size() int {
	switch n.open {
	case '"':
		return textSize(n.raw)
	case '{', '[':
		size := len("[]") + max(0, len(n.kids)-1) // commas
		for i, kid := range n.kids {
			if n.open == '{' {
				size += textSize(n.keys[i]) + len(":")
			}
			size += kid.size()
		}
		return size
	default:
		return len(n.raw)
	}
}

func textSize(s string) int { return len(`""`) + tool.SizeInJSON(s) }

func writeText(b *bytes.Buffer, s string) {
	data, err := encode(s)
	if err != nil { // a string always encodes
		data = []byte(`""`)
	}
	b.Write(bytes.TrimSpace(data))
}
