package query

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// unspaced are the scripts that put nothing between words. Korean has blanks.
func unspaced() []*unicode.RangeTable {
	return []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}
}

// IsUnspaced reports whether a character is of a script that puts nothing between words:
// each is a word to the index, and what people call a word is some of them in a row.
func IsUnspaced(r rune) bool {
	const firstThai, longVowel, halfLongVowel = 0x0E00, 'ー', 'ｰ' // the vowels belong to no script
	return r >= firstThai && IsWordRune(r) && (r == longVowel || r == halfLongVowel || unicode.In(r, unspaced()...))
}

// Apart puts blanks around the characters that [IsUnspaced] tells. FTS5 takes all of them up
// to the next sign for one word, in what is indexed as in what is looked for.
func Apart(text string) string {
	if !strings.ContainsFunc(text, IsUnspaced) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if IsUnspaced(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Parts takes a word apart that has characters of a script without blanks: each two of them
// that stand together are a part, for one says little.
func Parts(word string) []string {
	if !strings.ContainsFunc(word, IsUnspaced) {
		return []string{word}
	}
	apart := slices.DeleteFunc(strings.Fields(Apart(word)), func(one string) bool { return !strings.ContainsFunc(one, IsWordRune) })
	isOne := func(i int) bool { return i >= 0 && i < len(apart) && strings.ContainsFunc(apart[i], IsUnspaced) }
	var parts []string
	for i, one := range apart {
		switch {
		case isOne(i) && isOne(i+1):
			parts = append(parts, one+apart[i+1])
		case !isOne(i) || !isOne(i-1):
			parts = append(parts, one)
		}
	}
	return parts
}

// Word reports whether a text is one word to the index.
func Word(text string) bool {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !IsWordRune(r) }) {
		return false
	}
	return utf8.RuneCountInString(text) == 1 || !strings.ContainsFunc(text, IsUnspaced)
}
