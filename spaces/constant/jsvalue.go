package constant

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// javaScript is how JavaScript and TypeScript write values.
var javaScript = &language{
	words:   map[string]any{"true": true, "false": false, "null": nil},
	unquote: jsUnquote, numeral: jsNumeral,
	spreadList: "...", spreadMap: "...",
	bareKeys: true,
}

// jsUnquote returns what a string or a template without values stands for.
func jsUnquote(written string) (string, error) {
	body := written[1 : len(written)-1]
	if written[0] == '`' {
		body = strings.ReplaceAll(body, "\r", "\n")
	}
	return unescape(body, jsEscape)
}

// jsEscape returns what the escape that s begins with stands for, and its length.
func jsEscape(s string) (stands string, length int, err error) {
	const single = "b\bf\fn\nr\rt\tv\v"
	c, size := utf8.DecodeRuneInString(s[1:])
	if i := strings.IndexRune(single, c); i >= 0 && i%2 == 0 {
		return single[i+1 : i+2], 2, nil
	}
	switch {
	case c == '\n' || c == '\r' || c == '\u2028' || c == '\u2029':
		return "", 1 + size, nil // the line goes on
	case c == 'x' || c == 'u':
		r, length := codeUnit(s)
		if low, more := codeUnit(s[length:]); utf16.IsSurrogate(r) && more > 0 {
			r = utf16.DecodeRune(r, low)
			length += more
			if r == utf8.RuneError {
				length = 0
			}
		}
		if length == 0 || !utf8.ValidRune(r) {
			return "", 0, unknownf("has the escape %s, which is no character", shorten(s[:min(len(s), 6)]))
		}
		return string(r), length, nil
	case c == '0' && (len(s) < 3 || !isDigit(s[2])):
		return "\x00", 2, nil
	case c >= '0' && c <= '9':
		return "", 0, unknownf("has an escape by an octal number")
	}
	return s[1 : 1+size], 1 + size, nil
}

// codeUnit reads \xHH, \uHHHH or \u{H…}; length 0 is none of them.
func codeUnit(s string) (r rune, length int) {
	digits := ""
	switch {
	case strings.HasPrefix(s, `\x`) && len(s) >= 4:
		digits, length = s[2:4], 4
	case strings.HasPrefix(s, `\u{`):
		inside, _, closed := strings.Cut(s[3:], "}")
		if !closed {
			return 0, 0
		}
		digits, length = inside, len(inside)+4
	case strings.HasPrefix(s, `\u`) && len(s) >= 6:
		digits, length = s[2:6], 6
	}
	n, err := strconv.ParseUint(digits, 16, 31)
	if err != nil {
		return 0, 0
	}
	return rune(n), length
}

// jsNumeral returns what a number stands for: int64 where it is whole and exact.
func jsNumeral(written string) (any, error) {
	if strings.HasSuffix(written, "n") || oldOctal(written) {
		return nil, unknownf("has the number %s, which JSON has no form for", shorten(written))
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(written, "_", ""), 64)
	if prefix := strings.ToLower(written[:min(len(written), 2)]); prefix == "0x" || prefix == "0b" || prefix == "0o" {
		var whole uint64
		whole, err = strconv.ParseUint(written, 0, 64)
		n = float64(whole)
	}
	switch {
	case err != nil || math.IsInf(n, 0):
		return nil, unknownf("has the number %s, which is out of range", shorten(written))
	case n == math.Trunc(n) && n <= 1<<53:
		return int64(n), nil
	}
	return n, nil
}
