package web

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// visible is a text without the characters that terminals obey, and those that
// nobody sees: they carry words to a model past the person who reads the same. Line
// breaks and tabs stay, and so do the joiners that scripts and emoji need.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d', unicode.Is(unicode.Prepended_Concatenation_Mark, r):
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r),
			r >= 0xE0100 && r <= 0xE01EF, r == '\u2028', r == '\u2029', r == '\u3164', r == '\uffa0', r == '\u115f', r == '\u1160':
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\ufffd"))
}

// oneLine is foreign text for a line: visible, at most n characters.
func oneLine(text string, n int) string {
	text = strings.Join(strings.Fields(visible(text)), " ")
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// fence puts foreign text into an element that it cannot end.
func fence(element, attributes, text string) string {
	return fmt.Sprintf("<%s%s>\n%s\n</%s>", element, attributes, guard.Inside(element, strings.Trim(text, "\n")), element)
}

// attribute writes foreign text as an attribute.
func attribute(name, value string) string {
	value = oneLine(value, 2000)
	if value == "" {
		return ""
	}
	return fmt.Sprintf(` %s="%s"`, name, strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace(value))
}
