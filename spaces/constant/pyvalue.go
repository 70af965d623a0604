package constant

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// python is how Python writes values.
var python = &language{
	words:   map[string]any{"True": true, "False": false, "None": nil},
	unquote: pyUnquote, numeral: pyNumeral,
	spreadList: "*", spreadMap: "**",
	adjacent: true, tuples: true, addLists: true,
}

// pyUnquote returns what a string literal stands for.
func pyUnquote(written string) (string, error) {
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
	if strings.Contains(prefix, "r") || !strings.Contains(body, `\`) {
		return body, nil
	}
	return unescape(body, func(s string) (string, int, error) {
		r, length, err := pyEscape(s)
		switch {
		case err != nil:
			return "", 0, err
		case r >= 0:
			return string(r), length, nil
		case s[1] == '\n': // the line goes on
			return "", length, nil
		default: // not an escape: the backslash stays
			return s[:length], length, nil
		}
	})
}

// pyEscape reads the escape that s begins with, and says how long it is. The
// rune is negative for what stands for no character.
func pyEscape(s string) (r rune, length int, err error) {
	const single = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v"
	c := s[1]
	if i := strings.IndexByte(single, c); i >= 0 && i%2 == 0 {
		return rune(single[i+1]), 2, nil
	}
	var digits int
	base := 16
	switch c {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case 'N':
		return 0, 0, unknownf(`has a character by its name (\N)`)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		base = 8
		end := 2
		for end < len(s) && end < 4 && s[end] >= '0' && s[end] <= '7' {
			end++
		}
		s = `\` + "o" + s[1:end]
		digits = end - 1
	default:
		return -1, 2, nil
	}
	if len(s) < 2+digits {
		return 0, 0, unknownf("has a broken escape %s", shorten(s))
	}
	n, err := strconv.ParseUint(s[2:2+digits], base, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, 0, unknownf("has the escape %s, which is no character", s[:2+digits])
	}
	if base == 8 {
		return rune(n), 1 + digits, nil
	}
	return rune(n), 2 + digits, nil
}

// pyNumeral returns what a number stands for: int64 where it fits.
func pyNumeral(written string) (any, error) {
	if last := written[len(written)-1] | 0x20; last == 'j' && !strings.HasPrefix(strings.ToLower(written), "0x") {
		return nil, unknownf("has the complex number %s", shorten(written))
	}
	plain := strings.ReplaceAll(written, "_", "")
	if !strings.ContainsAny(plain, ".eE") || strings.HasPrefix(strings.ToLower(plain), "0x") {
		if n, err := strconv.ParseInt(written, 0, 64); err == nil && !oldOctal(plain) {
			return n, nil
		}
		if strings.Trim(plain, "0123456789") != "" || oldOctal(plain) {
			return nil, unknownf("has the number %s, which does not fit 64 bits", shorten(written))
		}
	}
	n, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsInf(n, 0) {
		return nil, unknownf("has the number %s, which is out of range", shorten(written))
	}
	return n, nil
}

// oldOctal tells 0777, which Python 3 and modules refuse, from 0 and 0000.
func oldOctal(s string) bool {
	return len(s) > 1 && s[0] == '0' && isDigit(s[1]) && strings.Trim(s, "0_") != ""
}
