package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxLineBytes bounds one line, so that a reader never holds more than this of
// a hostile file. The largest honest line is the output of a tool, which is
// capped at 10 MiB and grows at most sixfold in JSON.
const maxLineBytes = 64 << 20

// timeLayout is RFC 3339 with milliseconds, which thread.Event reads back.
const timeLayout = "2006-01-02T15:04:05.000Z"

func stamp(t time.Time) string { return t.UTC().Format(timeLayout) }

// errLineTooLong: a line is longer than maxLineBytes.
var errLineTooLong = fmt.Errorf("line is longer than %d bytes", maxLineBytes)

// TornError reports bytes after the last complete line, which a crash left or
// which are being written at this moment.
type TornError struct {
	Bytes int64
}

func (e *TornError) Error() string {
	return fmt.Sprintf("the last line of the transcript is torn (%d bytes)", e.Bytes)
}

// LineError reports a complete line that is not an event.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("transcript line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// encode is json.Marshal without escaping for HTML, which would change what a
// model wrote.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// encodeLine makes the line of an event, newline included, of a payload that is JSON.
func encodeLine(at string, id thread.ID, seq int64, t thread.EventType, payload []byte) ([]byte, error) {
	if payload[0] != '{' {
		return nil, fmt.Errorf("payload of %s is not an object", t)
	}
	line, err := encode(struct {
		Timestamp string           `json:"timestamp"`
		ThreadID  thread.ID        `json:"thread_id"`
		Seq       int64            `json:"seq"`
		Type      thread.EventType `json:"event_type"`
	}{at, id, seq, t})
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", t, err)
	}
	// As a field the payload would be encoded once more.
	line = slices.Concat(line[:len(line)-1], []byte(`,"payload":`), payload, []byte("}\n"))
	if len(line) > maxLineBytes {
		return nil, fmt.Errorf("event %s: %w", t, errLineTooLong)
	}
	return line, nil
}

// decodeLine reads a line without its newline.
func decodeLine(line []byte) (thread.Event, error) {
	var e thread.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return thread.Event{}, err
	}
	switch {
	case e.Seq < 1:
		return thread.Event{}, errors.New("seq is missing")
	case e.Type == "":
		return thread.Event{}, errors.New("event_type is missing")
	case len(e.Payload) == 0 || e.Payload[0] != '{':
		return thread.Event{}, errors.New("payload is not an object")
	}
	return e, nil
}

// lineReader reads the complete lines of a transcript one after the other.
type lineReader struct {
	r      *bufio.Reader
	buf    []byte
	line   int   // number of the line last returned, from 1
	offset int64 // where the next line starts
}

func newLineReader(r io.Reader) *lineReader {
	const readSize = 16 << 10
	return &lineReader{r: bufio.NewReaderSize(r, readSize)}
}

// next returns the next line without its newline, valid until the next call.
// At the end it returns io.EOF, or a *TornError when bytes without a newline
// remain. A line that is too long is passed over and reported as a *LineError.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	var size int64
	for {
		part, err := l.r.ReadSlice('\n')
		size += int64(len(part))
		if size <= maxLineBytes {
			l.buf = append(l.buf, part...)
		}
		switch {
		case err == nil:
			l.line++
			l.offset += size
			if size > maxLineBytes {
				return nil, &LineError{Line: l.line, Err: errLineTooLong}
			}
			return l.buf[:len(l.buf)-1], nil
		case errors.Is(err, io.EOF) && size > 0:
			return nil, &TornError{Bytes: size}
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// nextEvent is next, decoded. A line that is not an event is a *LineError.
func (l *lineReader) nextEvent() (thread.Event, error) {
	line, err := l.next()
	if err != nil {
		return thread.Event{}, err
	}
	e, err := decodeLine(line)
	if err != nil {
		return thread.Event{}, &LineError{Line: l.line, Err: err}
	}
	return e, nil
}
