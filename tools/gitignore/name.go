package gitignore

import "strings"

// matchName matches one segment, byte by byte: * any number of them, ? one, [a-z] one
// of a set; a backslash takes away a special meaning. A pattern that is none matches
// nothing.
func matchName(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			star, mark = p, n
			continue
		}
		if width, ok := matchByte(pattern[p:], name[n]); ok {
			p, n = p+width, n+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, n = star, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchByte matches the first element of a pattern, and says how long that is.
func matchByte(pattern string, c byte) (width int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return matchSet(pattern, c)
	case '\\':
		if len(pattern) < 2 {
			return 0, false
		}
		return 2, pattern[1] == c
	}
	return 1, pattern[0] == c
}

// matchSet matches [abc], [a-c], [!a] and [[:alpha:]].
func matchSet(pattern string, c byte) (width int, ok bool) {
	i := 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	found := false
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false // the set is not closed
		}
		if pattern[i] == ']' && !first {
			return i + 1, found != negated
		}
		if class, after, isClass := classAt(pattern, i); isClass {
			if class == nil {
				return 0, false
			}
			found = found || class(c)
			i = after
			continue
		}
		low, after, valid := setByte(pattern, i)
		if !valid {
			return 0, false
		}
		high := low
		if i = after; i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			if high, i, valid = setByte(pattern, i+1); !valid {
				return 0, false
			}
		}
		found = found || low <= c && c <= high
	}
}

// setByte is a byte of a set, and where the next one stands.
func setByte(pattern string, i int) (c byte, after int, valid bool) {
	if pattern[i] == '\\' {
		if i++; i >= len(pattern) {
			return 0, i, false
		}
	}
	return pattern[i], i + 1, true
}

// classAt is a class of characters such as [:alpha:]; nil for one that is not known.
func classAt(pattern string, i int) (class func(byte) bool, after int, isClass bool) {
	rest, found := strings.CutPrefix(pattern[i:], "[:")
	if !found {
		return nil, i, false
	}
	name, _, closed := strings.Cut(rest, ":]")
	if !closed || strings.Contains(name, "]") {
		return nil, i, false
	}
	return classOf(name), i + len(name) + 4, true
}

// classOf is a class of characters by its name; nil for one that is not known.
func classOf(name string) func(byte) bool {
	switch name {
	case "alnum":
		return func(c byte) bool { return isAlpha(c) || isDigit(c) }
	case "alpha":
		return isAlpha
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "cntrl":
		return func(c byte) bool { return c < ' ' || c == 0x7f }
	case "digit":
		return isDigit
	case "graph":
		return func(c byte) bool { return c > ' ' && c < 0x7f }
	case "lower":
		return func(c byte) bool { return c >= 'a' && c <= 'z' }
	case "print":
		return func(c byte) bool { return c >= ' ' && c < 0x7f }
	case "punct":
		return func(c byte) bool { return c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c) }
	case "space":
		return func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
	case "upper":
		return func(c byte) bool { return c >= 'A' && c <= 'Z' }
	case "xdigit":
		return func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
	}
	return nil
}

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
