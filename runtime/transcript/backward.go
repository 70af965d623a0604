package transcript

import (
	"bytes"
	"errors"
	"io"
	"iter"
)

// lineStart returns the offset just after the last newline before end, 0 when
// there is none. For the size of a file that is the length of its complete
// lines.
func lineStart(r io.ReaderAt, end int64) (int64, error) {
	const chunk = 16 << 10
	buf := make([]byte, min(end, chunk))
	for end > 0 {
		part := buf[:min(end, chunk)]
		if err := readFull(r, part, end-int64(len(part))); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return end - int64(len(part)) + int64(i) + 1, nil
		}
		end -= int64(len(part))
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
		for end > 0 {
			start, err := lineStart(r, end-1)
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
