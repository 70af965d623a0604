package top

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
)

// columns is how wide a text is at most. Tables of widths differ with the version of
// Unicode, and what draws has another than the terminal may have.
func columns(text string) int {
	if ascii(text) {
		return len(text)
	}
	return max(plain.Columns(text), ansi.StringWidth(text))
}

func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// shorten cuts a text to so many columns, with an ellipsis where it was longer.
func shorten(text string, most int) string { return within(text, most, plain.Shorten) }

// cut is the beginning of a text that has at most so many columns.
func cut(text string, most int) string { return within(text, most, plain.Cut) }

func within(text string, most int, fit func(string, int) string) string {
	for less := most; less > 0; less-- {
		if fits := fit(text, less); columns(fits) <= most {
			return fits
		}
	}
	return ""
}
