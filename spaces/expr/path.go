package expr

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// path is a parsed path: keys, and indices as they are written.
type path []string

func (p path) String() string { return strings.Join(p, ".") }

// Lookup returns the data at a path. Without any, or when the path is malformed,
// it returns false.
func Lookup(data any, dotted string) (any, bool) {
	p, ok := parsePath(dotted)
	if !ok {
		return nil, false
	}
	return p.in(data)
}

func (p path) in(data any) (any, bool) {
	for _, name := range p {
		switch d := data.(type) {
		case map[string]any:
			value, ok := d[name]
			if !ok {
				return nil, false
			}
			data = value
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(d) {
				return nil, false
			}
			data = d[i]
		default:
			return nil, false
		}
	}
	return data, true
}

func parsePath(s string) (path, bool) {
	var p path
	for rest := s; ; {
		n := nameLen(rest)
		if n == 0 || len(p) == 0 && !isLetter(rest[0]) {
			return nil, false
		}
		p, rest = append(p, rest[:n]), rest[n:]
		var ok bool
		if p, rest, ok = indices(p, rest); !ok {
			return nil, false
		}
		if rest == "" {
			return p, true
		}
		if rest[0] != '.' {
			return nil, false
		}
		rest = rest[1:]
	}
}

// indices reads [0][1] at the front of s.
func indices(p path, s string) (longer path, rest string, ok bool) {
	for strings.HasPrefix(s, "[") {
		digits, behind, closed := strings.Cut(s[1:], "]")
		if _, err := strconv.ParseUint(digits, 10, 31); !closed || err != nil {
			return nil, "", false
		}
		p, s = append(p, digits), behind
	}
	return p, s, true
}

// nameLen is the length of the name at the front of s.
func nameLen(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n]) || s[n] == '-') {
		n++
	}
	return n
}

func isLetter(b byte) bool { return isLower(b) || b >= 'A' && b <= 'Z' || b == '_' }
func isLower(b byte) bool  { return b >= 'a' && b <= 'z' }
func isDigit(b byte) bool  { return b >= '0' && b <= '9' }

// Plain turns a Go value into data, the way encoding/json sees it. Whole numbers
// become int64, all others float64.
func Plain(v any) (any, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("make data of %T: %w", v, err)
	}
	plain, err := item.ReadJSON(encoded)
	if err != nil {
		return nil, fmt.Errorf("make data of %T: %w", v, err)
	}
	return item.PlainNumbers(plain)
}
