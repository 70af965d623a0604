package gitrepo

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// maxLine is how many bytes are shown of a line.
const maxLine = 2_000

// Shown is a line of a stranger's as it is shown: what a terminal obeys, and what
// nobody sees, by its number.
func Shown(text string) string { return ShownStart(text, len(text)) }

// ShownStart is [Shown] of a line of so many bytes, of which text is the start.
func ShownStart(text string, length int) string {
	cut := ""
	if len(text) > maxLine {
		cut = fmt.Sprintf("… [line cut, %d bytes]", length)
		text = item.Begin(text, maxLine)
	}
	text = strings.ToValidUTF8(text, "\ufffd")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t' || r == '\n' || r == '\u200c' || r == '\u200d':
			b.WriteRune(r)
		case r == '\r':
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + cut
}
