package openai

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"sync"
)

// errorData is the beginning of an error event as the library recognises it. With
// a space more it passes as any other: the library keeps only what its own type
// has room for, and waits for a line after it, which may never come.
var errorData = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^data:\s*{("error":)`) })

// dataLines is an event stream without its comments and without the fields
// that this protocol does not use. The library takes every line that is no data
// for a part of a JSON error, so that one comment before an error event would
// make the error unreadable.
type dataLines struct {
	in   *bufio.Reader
	body io.Closer
	line []byte // what is left of the current line
	err  error  // what ended the stream, after line
}

func onlyData(body io.ReadCloser) io.ReadCloser {
	return &dataLines{in: bufio.NewReader(body), body: body}
}

func (d *dataLines) Read(p []byte) (int, error) {
	for len(d.line) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		line, err := d.in.ReadBytes('\n')
		d.err = err
		if err != nil && len(line) > 0 {
			line = append(line, '\n') // the library drops a last line without an end
		}
		if !ignored(line) {
			d.line = errorData().ReplaceAll(line, []byte("data: { $1"))
		}
	}
	n := copy(p, d.line)
	d.line = d.line[n:]
	return n, nil
}

func ignored(line []byte) bool {
	for _, field := range []string{":", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(line, []byte(field)) {
			return true
		}
	}
	return false
}

func (d *dataLines) Close() error { return d.body.Close() }
