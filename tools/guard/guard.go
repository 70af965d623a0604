// Package guard decides what of a tool's result a model sees: within a bound, as
// valid UTF-8, without signature lines, and nothing binary. In the place of a part
// that is left out its size is said. All of it is pure; the caller keeps the whole
// and says in a few words how to get at it.
package guard

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Clean is a result as it may be shown and kept: valid UTF-8, without a signature
// line at the beginning of a text, and with a description in place of a text
// that is binary. A result that is JSON stays JSON; its texts are its strings.
func Clean(text string) string {
	if !suspicious(text) {
		return text
	}
	if n, ok := parse(text); ok {
		return n.mapStrings(cleanText).String()
	}
	return cleanText(text)
}

// suspicious reports whether there may be something to clean: JSON writes NUL as
// an escape.
func suspicious(text string) bool {
	return !utf8.ValidString(text) || strings.Contains(text, signatureMark) ||
		strings.ContainsAny(text, "\x00\ufffd") || strings.Contains(text, `\u0000`)
}

func cleanText(text string) string {
	if IsBinary([]byte(text)) {
		return Binary([]byte(text))
	}
	return stripSignature(strings.ToValidUTF8(text, "\ufffd"))
}

// Text may have a few characters that are none, and in a longer one every tenth,
// as text in another encoding has.
const (
	fewDamaged   = 4
	damagedShare = 10
)

// IsBinary reports whether data are no text: they have a NUL byte, or too many
// bytes that are no UTF-8.
func IsBinary(data []byte) bool {
	damaged, all := 0, 0
	for rest := data; len(rest) > 0; all++ {
		r, size := utf8.DecodeRune(rest)
		if r == 0 {
			return true
		}
		if r == utf8.RuneError {
			damaged++
		}
		rest = rest[size:]
	}
	return damaged > max(fewDamaged, all/damagedShare)
}

// MediaType is what data are by their first bytes.
func MediaType(data []byte) string {
	detected := http.DetectContentType(data)
	if strings.HasPrefix(detected, "text/plain") && IsBinary(data) {
		return "application/octet-stream"
	}
	return detected
}

// Binary stands in a text for data that are none. They may be shown beside it.
func Binary(data []byte) string { return BinaryOf(len(data), MediaType(data)) }

// BinaryOf is [Binary] for data of which the size and the type are known.
func BinaryOf(size int, mediaType string) string {
	return fmt.Sprintf("[binary, no text: %d bytes, %s]", size, mediaType)
}

// Shorten is text within most characters: itself where it fits, else a summary
// of the same structure that ends with more, which should say where the whole
// is. JSON keeps its keys; long strings and lists in it, and plain text, keep
// their beginning and their end, with a count of what is left out between.
func Shorten(text string, most int, more string) string {
	size := utf8.RuneCountInString(text)
	if size <= most {
		return text
	}
	note := fmt.Sprintf("shortened from %d characters; %s", size, more)
	if n, ok := parse(text); ok {
		if short, fits := n.within(most, note); fits {
			return short
		}
	}
	note = "\n[" + note + "]"
	room := most - utf8.RuneCountInString(note)
	if room < minText {
		return firstRunes(text, most)
	}
	return cut(text, room) + note
}

// minText is the least room, in characters, in which the two ends of a text and
// what stands between them make sense.
const minText = 80

// cut is text within room characters: its beginning, what is left out, and its
// end. It cuts between lines where lines are short enough. Where there is hardly
// any room, only the beginning is there, with the number of characters that
// follow, which may then take a little more room.
func cut(text string, room int) string {
	size := utf8.RuneCountInString(text)
	if room < minText {
		more := fmt.Sprintf("… [%d more]", size-room)
		if size <= room+utf8.RuneCountInString(more) {
			return text
		}
		return firstRunes(text, room) + more
	}
	if size <= room {
		return text
	}
	lines := 1 + strings.Count(strings.TrimSuffix(text, "\n"), "\n")
	room -= utf8.RuneCountInString(gap(size, lines, lines, lines)) // no gap has larger numbers
	head, tail := firstRunes(text, room*2/3), lastRunes(text, room/3)
	if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 {
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		tail = tail[i+1:]
	}
	left := size - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	first := 1 + strings.Count(head, "\n")
	last := 1 + strings.Count(text[:len(text)-len(tail)-1], "\n")
	mark := gap(left, first, last, lines)
	if strings.HasSuffix(head, "\n") {
		mark = strings.TrimPrefix(mark, "\n")
	}
	return head + mark + tail
}

// gap stands for characters that are left out, of the lines from first to last.
func gap(characters, first, last, lines int) string {
	if lines == 1 {
		return fmt.Sprintf(" … [%d characters left out] … ", characters)
	}
	return fmt.Sprintf("\n… [%d characters left out, lines %d to %d of %d] …\n", characters, first, last, lines)
}

// firstRunes is the beginning of text, at most n characters.
func firstRunes(text string, n int) string {
	for i := range text {
		if n <= 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// lastRunes is the end of text, at most n characters.
func lastRunes(text string, n int) string {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return text[at:]
}
