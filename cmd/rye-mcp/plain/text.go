// Package plain makes any text fit to be shown on a terminal: text of models, files and
// other programs cannot move the cursor, change colours, open links or turn the
// direction of what is written around it.
package plain

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Line makes a text fit for one line: white space becomes a space, and what would not
// be seen a sign that is.
func Line(text string) string { return strings.Map(visible, strings.TrimSpace(text)) }

// Lines is [Line] for a text of several: its line ends and tabs stay.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return visible(r)
	}, text)
}

const (
	controlPictures = 0x2400 // the signs of the 32 control characters, in their order
	deletePicture   = 0x2421
	softHyphen      = 0x00ad
	zeroWidthNon    = 0x200c // joiner
	zeroWidthJoiner = 0x200d
)

// visible is what stands for a character; below 0 for those that only say how their
// neighbours are joined.
func visible(r rune) rune {
	switch {
	case unicode.Is(unicode.Variation_Selector, r):
		return -1 // terminals disagree about the width that comes of it
	case unicode.IsPrint(r):
		return r
	case unicode.IsSpace(r):
		return ' '
	case r < ' ':
		return controlPictures + r
	case r == 0x7f:
		return deletePicture
	case r == softHyphen, r == zeroWidthNon, r == zeroWidthJoiner:
		return -1
	}
	return unicode.ReplacementChar
}

// Columns is how wide a terminal shows a text.
func Columns(text string) int {
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

// Shorten cuts a text to so many columns, with an ellipsis where it was longer.
func Shorten(text string, most int) string {
	if Columns(text) <= most {
		return text
	}
	if most <= 0 {
		return ""
	}
	return Cut(text, most-1) + "…"
}

// Cut is the beginning of a text that has at most so many columns.
func Cut(text string, most int) string {
	used := 0
	for i, r := range text {
		if used += runeColumns(r); used > most {
			return text[:i]
		}
	}
	return text
}

// Wrap breaks a text between words into lines of so many columns; a word that is
// longer has a line of its own. Without a bound it is one line.
func Wrap(text string, most int) (lines []string) {
	if most <= 0 || Columns(text) <= most {
		return []string{text}
	}
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case Columns(line)+1+Columns(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
