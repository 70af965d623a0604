package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"sync"
)

const (
	// maxLine is the longest message that is read, in bytes without its newline.
	maxLine = 10 << 20
	// keepLine is how much of the start and of the end of a longer line is kept,
	// to find the id to refuse it with.
	keepLine = 4 << 10
)

// line is one line of input without its newline. Where tooLong is set, data is
// only the start of the line and tail its end.
type line struct {
	data    []byte
	tail    []byte
	tooLong bool
}

// lineReader splits a stream into lines and never holds more than limit bytes
// of one.
type lineReader struct {
	r     *bufio.Reader
	limit int
}

func newLineReader(in io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(in, 64<<10), limit: limit}
}

// next returns the next line; its bytes are the caller's. A last line without
// newline counts as one. After the last line the error is io.EOF.
func (lr *lineReader) next() (line, error) {
	var data []byte
	for {
		chunk, err := lr.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return line{}, err
		}
		if len(bytes.TrimSuffix(chunk, []byte("\n")))+len(data) > lr.limit {
			return lr.skip(append(data, chunk...), err)
		}
		data = append(data, chunk...)
		switch {
		case err == nil:
			return line{data: data[:len(data)-1]}, nil
		case errors.Is(err, io.EOF) && len(data) == 0:
			return line{}, io.EOF
		case errors.Is(err, io.EOF):
			return line{data: data}, nil
		}
	}
}

// skip reads to the end of a line whose first bytes are seen and whose last
// read ended with err.
func (lr *lineReader) skip(seen []byte, err error) (line, error) {
	l := line{
		data:    bytes.Clone(seen[:min(len(seen), keepLine)]),
		tail:    lastOf(nil, seen),
		tooLong: true,
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		var chunk []byte
		chunk, err = lr.r.ReadSlice('\n')
		l.tail = lastOf(l.tail, chunk)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return line{}, err
	}
	return l, nil
}

// lastOf returns the last keepLine bytes of tail followed by chunk.
func lastOf(tail, chunk []byte) []byte {
	all := slices.Concat(tail, chunk[max(0, len(chunk)-keepLine):])
	return all[max(0, len(all)-keepLine):]
}

// lastMember matches an id that is the last member of an object that ends the
// line. In valid JSON that object is the message itself: a quote that follows
// a comma or brace and precedes id cannot be within a string.
var lastMember = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[,{]\s*"id"\s*:\s*(-?[0-9][0-9.eE+-]*|"(?:[^"\\]|\\.)*")\s*}\s*$`)
})

// id finds the request id of a line that was too long, or the zero id. Clients
// write it first or last.
func (l line) id() requestID {
	if id, ok := firstID(l.data); ok {
		return id
	}
	if m := lastMember().FindSubmatch(l.tail); m != nil {
		if id, err := parseID(m[1]); err == nil {
			return id
		}
	}
	return requestID{}
}

// firstID looks for the id among the members of a message that begin within
// head.
func firstID(head []byte) (requestID, bool) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(head, utf8BOM)))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return requestID{}, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return requestID{}, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return requestID{}, false
		}
		if key == "id" {
			id, err := parseID(value)
			return id, err == nil
		}
	}
	return requestID{}, false
}
