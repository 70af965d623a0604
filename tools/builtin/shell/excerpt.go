package shell

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// halfBytes is how much is kept of the beginning and of the end of a stream:
// together 14 KiB of text. Two streams as JSON stay within the 40 000 bytes that
// every MCP client shows its model.
const halfBytes = 7 << 10

// excerpt is a writer that keeps the beginning and the end of what is written
// to it, as valid UTF-8: every byte that is none becomes U+FFFD. It needs a
// bounded amount of memory.
type excerpt struct {
	partial []byte // the start of a character whose end has not been written yet
	head    []byte
	full    bool   // head takes no more
	tail    []byte // up to twice halfBytes; the last halfBytes count
	dropped int    // bytes of text already removed from tail
}

// Write takes all of p.
func (e *excerpt) Write(p []byte) (int, error) {
	chunk := slices.Concat(e.partial, p)
	whole := len(chunk) - partialLen(chunk)
	e.keep(valid(chunk[:whole]))
	e.partial = append([]byte(nil), chunk[whole:]...)
	return len(p), nil
}

// keep takes valid UTF-8.
func (e *excerpt) keep(text []byte) {
	if !e.full {
		begin := item.Begin(text, halfBytes-len(e.head))
		e.head = append(e.head, begin...)
		e.full = len(begin) < len(text)
		text = text[len(begin):]
	}
	e.tail = append(e.tail, text...)
	if len(e.tail) > 2*halfBytes {
		e.trim()
	}
}

// trim shortens tail to the last halfBytes, less where that would split a
// character.
func (e *excerpt) trim() {
	end := item.End(e.tail, halfBytes)
	e.dropped += len(e.tail) - len(end)
	e.tail = append(e.tail[:0], end...)
}

// finish takes what was written of a last, unfinished character and brings tail
// to its final length.
func (e *excerpt) finish() {
	e.keep(valid(e.partial))
	e.partial = nil
	if len(e.tail) > halfBytes {
		e.trim()
	}
}

// String ends the writing and returns the text, with a line in place of what
// was left out.
func (e *excerpt) String() string {
	e.finish()
	if e.dropped == 0 {
		return string(e.head) + string(e.tail)
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", e.head, e.dropped, e.tail)
}

// Cut ends the writing and tells whether something was left out.
func (e *excerpt) Cut() bool {
	e.finish()
	return e.dropped > 0
}

// partialLen returns how many bytes at the end of b are the beginning of a
// character that is not complete.
func partialLen(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if end := b[len(b)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// valid replaces every byte that is not part of a character by U+FFFD.
func valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(string([]rune(string(b))))
}
