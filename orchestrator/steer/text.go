package steer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// plainText is a message as it is kept: valid UTF-8 without control characters, but for
// ends of lines and tabs, and without what a person who reads along does not see.
func plainText(text string) (string, error) {
	if len(text) > maxGiven { // most of it would be looked at in vain
		return "", tooLong(len(text))
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, text))
	switch {
	case text == "":
		return "", tool.Faultf(tool.CodeBadArguments, "message is empty; say what the thread is to know")
	case len(text) > store.MaxMessageBytes:
		return "", tooLong(len(text))
	}
	return text, nil
}

// maxGiven is what may be given in the hope that it becomes short enough.
const maxGiven = 4 * store.MaxMessageBytes

func tooLong(bytes int) error {
	return tool.Faultf(tool.CodeBadArguments, "message has %d bytes; at most %d", bytes, store.MaxMessageBytes).
		With("max_bytes", store.MaxMessageBytes).
		WithHint("write the long part into a file of the project, and name that file in the message")
}

// unseen reports whether a character is control, turns the direction of text around, or
// is a tag, by which text can be hidden.
func unseen(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069, r >= 0xE0000 && r <= 0xE007F:
		return true
	}
	return unicode.IsControl(r)
}
