package sign

import (
	"bytes"
	"strings"
)

// marked is in every signature line of every version.
var marked = []byte("rye:signed:")

// wholeSignature finds the text of a signature of any version, wherever it stands:
// whatever is before the hash, the hash, and the beginning of what the key made.
// Text about signatures has no such hash.
var wholeSignature = lazily(`rye:signed:\S*[0-9a-f]{64}:[A-Za-z0-9_-]{8}`)

// Holds reports whether a line has a signature in it, also one that is damaged or
// has other text around it: it is not to be shown, matched or copied.
func Holds(line []byte) bool {
	return bytes.Contains(line, marked) && wholeSignature().Match(line)
}

// Hide returns a text without the lines that hold a signature.
func Hide(text string) string {
	if !strings.Contains(text, string(marked)) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !Holds([]byte(line)) {
			b.WriteString(line)
		}
	}
	return b.String()
}
