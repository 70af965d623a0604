package transcript

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/rye-mcp/rye-mcp/runtime/records"
)

// lineStart returns the offset just after the last newline before end, 0 when
// there is none. For the size of a file that is the length of its complete
// lines.
func lineStart(r io.ReaderAt, end int64) (int64, error) {
	return new(lineFinder).start(r, end)
}

// completeLines is the length of the complete lines of an open transcript.
func completeLines(r records.Reader) (int64, error) {
	size, err := r.Size()
	if err != nil {
		return 0, err
	}
	return lineStart(r, size)
}

// lineFinder looks for newlines backwards. It looks a little way first: a file of tiny
// lines is not read a thousand times over.
type lineFinder struct{ buf []byte }

const (
	firstLook = 256
	lastLook  = 16 << 10
)

func (f *lineFinder) start(r io.ReaderAt, end int64) (int64, error) {
	for look := int64(firstLook); end > 0; look = min(4*look, lastLook) {
		size := min(end, look)
		if int64(cap(f.buf)) < size {
			f.buf = make([]byte, size)
		}
		part := f.buf[:size]
		if err := readFull(r, part, end-size); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end - size + int64(i) + 1, nil
		}
		end -= size
	}
	return 0, nil
}

// placed is a line without its newline, and where it starts.
type placed struct {
	offset int64
	line   []byte
}

// backward yields the complete lines that end at or before end, the last one
// first. A line that is too long is yielded as errLineTooLong, with its place.
func backward(r io.ReaderAt, end int64) iter.Seq2[placed, error] {
	return func(yield func(placed, error) bool) {
		var find lineFinder
		for end > 0 {
			start, err := find.start(r, end-1)
			if err != nil {
				yield(placed{}, err)
				return
			}
			p := placed{offset: start}
			if size := end - 1 - start; size <= maxLineBytes {
				p.line = make([]byte, size)
				err = readFull(r, p.line, start)
			} else {
				err = errLineTooLong
			}
			if !yield(p, err) || (err != nil && !errors.Is(err, errLineTooLong)) {
				return
			}
			end = start
		}
	}
}

// readFull reads len(buf) bytes at off. The end of the file comes too early
// only when somebody shortened it.
func readFull(r io.ReaderAt, buf []byte, off int64) error {
	n, err := r.ReadAt(buf, off)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
