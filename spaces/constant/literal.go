package constant

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
)

// Texts are written as Starlark has them, which knows fewer escapes. It refuses
// what is no character, such as half a surrogate pair.

var pyEscapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)`) })

func pyText(written string) (string, error) {
	begin := strings.IndexAny(written, `"'`)
	prefix, body := strings.ToLower(written[:begin]), written[begin:]
	switch {
	case strings.Contains(prefix, "b"):
		return "", unknownf("has bytes, which JSON has no form for")
	case strings.ContainsAny(prefix, "ft"):
		return "", unknownf("has a text with values in it (%s)", shorten(written))
	case prefix == "r":
		return "r" + body, nil
	}
	return pyEscapes().ReplaceAllStringFunc(body, func(escape string) string {
		switch c := escape[1]; {
		case c >= '0' && c <= '7':
			return unicodeEscape(escape[1:], 8)
		case c == 'x' && len(escape) == 4:
			return unicodeEscape(escape[2:], 16)
		case strings.IndexByte("\n\\'\"abfnrtvxuUN", c) >= 0:
			return escape
		}
		return `\` + escape // the backslash stays
	}), nil
}

var jsEscapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]+\}|[0-7]{1,3}|.)|"|\n`)
})

// jsText also reads templates without values.
func jsText(written string) (string, error) {
	body := written[1 : len(written)-1]
	if written[0] == '`' {
		body = strings.ReplaceAll(body, "\r", "\n")
	}
	return `"` + jsEscapes().ReplaceAllStringFunc(body, func(escape string) string {
		if len(escape) == 1 {
			return map[string]string{`"`: `\"`, "\n": `\n`}[escape]
		}
		switch c := escape[1]; {
		case c == 'u' && len(escape) == 12:
			high, _ := strconv.ParseUint(escape[2:6], 16, 16)
			low, _ := strconv.ParseUint(escape[8:], 16, 16)
			return fmt.Sprintf(`\U%08x`, utf16.DecodeRune(rune(high), rune(low)))
		case c == 'x' && len(escape) == 4:
			return unicodeEscape(escape[2:], 16)
		case c == 'u':
			return unicodeEscape(strings.Trim(escape[2:], "{}"), 16)
		case escape == `\0`:
			return `\x00`
		case c >= '0' && c <= '9':
			return `\N` // modules refuse octal numbers
		case strings.IndexByte("\\'\"bfnrtvx", c) >= 0:
			return escape
		}
		return strings.TrimLeft(escape[1:], "\n\r\u2028\u2029") // the line goes on
	}) + `"`, nil
}

// unicodeEscape is the escape of a character by its number; where there is none,
// one that is refused.
func unicodeEscape(digits string, base int) string {
	n, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return `\N`
	}
	return fmt.Sprintf(`\U%08x`, n)
}
