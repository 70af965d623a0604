package tool

import (
	"encoding/json"
	"unicode/utf8"
)

// JSONSize is what a text takes in a JSON result, in bytes. Escapes count: a
// control character takes six.
func JSONSize(s string) int {
	encoded, err := json.Marshal(s)
	if err != nil { // never: every string marshals
		return 6 * len(s)
	}
	return len(encoded)
}

// SizeInJSON is what the characters of a text take within a JSON string that is
// not escaped for HTML, in bytes.
func SizeInJSON(text string) int {
	size := 0
	for text != "" {
		width, written := firstInJSON(text)
		size, text = size+written, text[width:]
	}
	return size
}

// FitsJSON is how many bytes of text take at most room bytes by [SizeInJSON]. It
// never ends within a character.
func FitsJSON(text string, room int) int {
	rest := text
	for rest != "" {
		width, written := firstInJSON(rest)
		if room -= written; room < 0 {
			break
		}
		rest = rest[width:]
	}
	return len(text) - len(rest)
}

// firstInJSON is how many bytes the first character of a text takes there, and how
// many encoding/json writes for it; a byte that is not UTF-8 becomes an escape.
func firstInJSON(text string) (width, written int) {
	r, width := utf8.DecodeRuneInString(text)
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return width, 2
	case r < ' ', r == '\u2028', r == '\u2029', r == utf8.RuneError && width == 1:
		return width, 6
	default:
		return width, width
	}
}
