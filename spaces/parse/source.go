package parse

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// MaxBytes is the largest item file that is read: 4 MiB. An item is text that a
// model reads; what is larger is a mistake or an attack on memory.
const MaxBytes = 4 << 20

// Error says where an item file is wrong.
type Error struct {
	Path   string
	Line   int // in the file, from 1
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason) }

// source is the text of a file with LF line ends and without a byte order mark.
// Its lines are the lines of the file.
type source struct {
	path string
	text string
}

// newSource checks that src is text of a sensible size.
func newSource(path string, src []byte) (*source, error) {
	s := &source{path: path}
	if len(src) > MaxBytes {
		return nil, s.errorf(1, "the file has %d bytes; an item may have %d", len(src), MaxBytes)
	}
	src = bytes.TrimPrefix(src, byteOrderMark())
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size <= 1 {
			return nil, s.errorf(lineAt(string(src), i), "the text is not valid UTF-8")
		}
		if r == 0 {
			return nil, s.errorf(lineAt(string(src), i), "the text contains a NUL byte")
		}
		i += size
	}
	s.text = strings.ReplaceAll(string(src), "\r\n", "\n")
	return s, nil
}

// errorf makes an error. Texts among the arguments are from the file, and shown as
// [item.Shown] shows them; others are marked as said.
func (s *source) errorf(line int, format string, args ...any) error {
	return &Error{Path: s.path, Line: line, Reason: sayf(format, args...)}
}

// said is a text of our own in a message.
type said string

func sayf(format string, args ...any) string {
	for i, arg := range args {
		if text, foreign := arg.(string); foreign {
			args[i] = item.Shown(text)
		}
	}
	return fmt.Sprintf(format, args...)
}

// lineAt returns the line, from 1, of the byte at offset.
func lineAt(text string, offset int) int {
	return 1 + strings.Count(text[:offset], "\n")
}

// cutLine splits text after its first line; line has no line end.
func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return line, rest
}

// byteOrderMark is U+FEFF in UTF-8, which some editors put in front of a file.
func byteOrderMark() []byte { return []byte{0xEF, 0xBB, 0xBF} }
