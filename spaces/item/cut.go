package item

import "unicode/utf8"

// Start is where the character begins that has the byte at a place of a text. It is the
// place itself at the end, and where the bytes before it are no beginning of a character.
func Start[T string | []byte](text T, at int) int {
	for i := at; i >= 0 && i > at-utf8.UTFMax && i < len(text); i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return at
}

// Begin is the beginning of a text in at most n bytes, in whole characters.
func Begin[T string | []byte](text T, n int) T {
	if len(text) <= n {
		return text
	}
	return text[:Start(text, max(0, n))]
}

// End is the end of a text in at most n bytes, in whole characters.
func End[T string | []byte](text T, n int) T {
	if len(text) <= n {
		return text
	}
	from := len(text) - max(0, n)
	for i := from; i < from+utf8.UTFMax; i++ {
		if i == len(text) || utf8.RuneStart(text[i]) {
			return text[i:]
		}
	}
	return text[from:]
}
