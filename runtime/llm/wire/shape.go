package wire

import (
	"bytes"
	"fmt"
)

const (
	// maxEventBytes bounds one line of an event: a whole answer, in JSON that escapes
	// each of its bytes.
	maxEventBytes = 32 << 20
	// maxEventValues bounds the values of one event. Decoded, each can take kilobytes;
	// models answer in few values, and arguments of calls come as text.
	maxEventValues = 50_000
)

// shape counts the values in the events of a stream before anybody decodes them.
type shape struct {
	begun  int  // bytes of "data:" that the line has begun with; noData: it is another line
	size   int  // of the line
	values int  // of the event so far
	depth  int  // of its brackets
	text   bool // within a string
	escape bool // behind a backslash
}

const noData = -1

var dataField = []byte("data:")

// read takes the next bytes and says why the event goes beyond what is decoded.
func (s *shape) read(p []byte) error {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if s.size += len(line); s.size > maxEventBytes {
			return Malformed(fmt.Errorf("an event of the answer is longer than %d MiB", maxEventBytes>>20))
		}
		s.line(line)
		if s.values > maxEventValues {
			return Malformed(fmt.Errorf("an event of the answer has more than %d values", maxEventValues))
		}
		if ended {
			s.endLine()
		}
		p = rest
	}
	return nil
}

// line counts in a part of a line.
func (s *shape) line(p []byte) {
	for len(p) > 0 && s.begun >= 0 && s.begun < len(dataField) {
		if p[0] != dataField[s.begun] {
			s.begun = noData
			return
		}
		s.begun++
		p = p[1:]
	}
	if s.begun == noData {
		return
	}
	for _, c := range p {
		switch {
		case s.escape:
			s.escape = false
		case s.text:
			s.text, s.escape = c != '"', c == '\\'
		case c == '"':
			s.text = true
		case c == '{', c == '[':
			s.depth++
			s.values++
		case c == '}', c == ']':
			s.depth--
		case c == ',':
			s.values++
		}
	}
}

// endLine begins a new event, unless the one so far is open: it can have several
// lines.
func (s *shape) endLine() {
	if s.depth <= 0 {
		s.depth, s.values = 0, 0
	}
	s.begun, s.size, s.text, s.escape = 0, 0, false, false
}
