package constant

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// numeral returns what a number stands for: int64 where it is whole and fits.
// It refuses 0777, as Python 3 and modules do.
func numeral(written string) (any, bool) {
	plain := strings.ReplaceAll(written, "_", "")
	if strings.Trim(plain, "0123456789") == "" && plain[0] == '0' {
		return int64(0), strings.Trim(plain, "0") == ""
	}
	if n, err := strconv.ParseInt(written, 0, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseFloat(plain, 64)
	return n, err == nil && !strings.ContainsAny(plain, "xXpP")
}

func pyNumber(written string) (any, error) {
	n, ok := numeral(written)
	switch {
	case ok:
		return n, nil
	case strings.HasSuffix(strings.ToLower(written), "j"):
		return nil, unknownf("has the complex number %s", shorten(written))
	case strings.ContainsAny(written, ".eE"):
		return nil, unknownf("has the number %s, which is out of range", shorten(written))
	}
	return nil, unknownf("has the number %s, which does not fit 64 bits", shorten(written))
}

// jsNumber gives int64 where a number, which is a float64, is whole and exact.
func jsNumber(written string) (any, error) {
	v, ok := numeral(written)
	n, isFloat := v.(float64)
	ok = ok && (len(written) < 2 || written[0] != '0' || !isDigit(written[1]))
	switch {
	case ok && !isFloat:
		n = float64(v.(int64))
	case !ok && strings.Contains(written, "."), math.IsInf(n, 0):
		return nil, unknownf("has the number %s, which is out of range", shorten(written))
	case !ok:
		return nil, unknownf("has the number %s, which JSON has no form for", shorten(written))
	}
	if n == math.Trunc(n) && n <= 1<<53 {
		return int64(n), nil
	}
	return n, nil
}

// unescape replaces what begins with a backslash by what escape says that it
// stands for; escape also says how long it is.
func unescape(body string, escape func(string) (string, int, error)) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(body, '\\')
		if i < 0 || i+1 == len(body) {
			b.WriteString(body)
			return b.String(), nil
		}
		b.WriteString(body[:i])
		s, length, err := escape(body[i:])
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		body = body[i+length:]
	}
}

// pyText returns what a string literal stands for.
func pyText(written string) (string, error) {
	begin := strings.IndexAny(written, `"'`)
	prefix, body := strings.ToLower(written[:begin]), written[begin:]
	switch {
	case strings.Contains(prefix, "b"):
		return "", unknownf("has bytes, which JSON has no form for")
	case strings.ContainsAny(prefix, "ft"):
		return "", unknownf("has a text with values in it (%s)", shorten(written))
	}
	quote := 1
	if len(body) >= 6 && body[:3] == strings.Repeat(body[:1], 3) {
		quote = 3
	}
	body = body[quote : len(body)-quote]
	if strings.Contains(prefix, "r") {
		return body, nil
	}
	return unescape(body, pyEscape)
}

// pyEscape returns what the escape that s begins with stands for, and its length.
func pyEscape(s string) (stands string, length int, err error) {
	c := s[1]
	switch {
	case c == '\n': // the line goes on
		return "", 2, nil
	case c == 'N':
		return "", 0, unknownf(`has a character by its name (\N)`)
	case c >= '0' && c <= '7':
		for length = 2; length < min(len(s), 4) && s[length] >= '0' && s[length] <= '7'; length++ {
		}
		n, err := strconv.ParseUint(s[1:length], 8, 16)
		return string(rune(n)), length, err
	case strings.IndexByte(`\'"abfnrtvxuU`, c) < 0: // not an escape: the backslash stays
		return s[:2], 2, nil
	}
	r, _, tail, err := strconv.UnquoteChar(s, c)
	if err == nil {
		return string(r), len(s) - len(tail), nil
	}
	if length = map[byte]int{'x': 4, 'u': 6, 'U': 10}[c]; len(s) < length {
		return "", 0, unknownf("has a broken escape %s", shorten(s))
	}
	return "", 0, unknownf("has the escape %s, which is no character", shorten(s[:length]))
}

// jsText returns what a string or a template without values stands for.
func jsText(written string) (string, error) {
	body := written[1 : len(written)-1]
	if written[0] == '`' {
		body = strings.ReplaceAll(body, "\r", "\n")
	}
	return unescape(body, jsEscape)
}

// jsEscape returns what the escape that s begins with stands for, and its length.
func jsEscape(s string) (stands string, length int, err error) {
	c, size := utf8.DecodeRuneInString(s[1:])
	switch {
	case strings.ContainsRune("\n\r\u2028\u2029", c): // the line goes on
		return "", 1 + size, nil
	case strings.ContainsRune("bfnrtv", c):
		r, _, _, err := strconv.UnquoteChar(s, 0)
		return string(r), 2, err
	case c == 'x' || c == 'u':
		r, length := codeUnit(s)
		if low, more := codeUnit(s[length:]); utf16.IsSurrogate(r) && more > 0 {
			r, length = utf16.DecodeRune(r, low), length+more
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
