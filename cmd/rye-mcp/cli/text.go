package cli

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// oneLine makes any text fit for one line of a terminal: what would move the
// cursor or change its colours becomes a space, as names and errors can hold
// what a model or a file said.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
}

// manyLines is oneLine for a text of several: its line ends and tabs stay.
func manyLines(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// columns is how wide a terminal shows a text.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is 2 for the wide characters of East Asia and most pictures
// (Unicode Standard Annex 11), 0 for marks that are drawn onto the rune before
// them.
func runeColumns(r rune) int {
	switch {
	case r < 0x300: // nearly everything
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// shorten cuts a text to so many columns, with an ellipsis where it was longer.
func shorten(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	var b strings.Builder
	used := 1 // the ellipsis
	for _, r := range text {
		w := runeColumns(r)
		if used+w > most {
			break
		}
		used += w
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// wrap breaks a text between words into lines of so many columns; a word that is
// longer has a line of its own. Without a bound it is one line.
func wrap(text string, most int) (lines []string) {
	if most <= 0 || columns(text) <= most {
		return []string{text}
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
