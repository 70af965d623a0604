package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DefaultPageBytes is the size of a page when none is asked for: what a model
// can take in at once without losing its thread.
const DefaultPageBytes = 12 << 10

// ErrBadCursor is wrapped when a cursor did not come from a page of the same
// transcript.
var ErrBadCursor = errors.New("not a cursor of this transcript")

// TailOptions say which part of a transcript to read.
type TailOptions struct {
	Cursor   string // where the page before ended; empty: the beginning
	Last     int    // without a cursor: only the newest so many events; 0: from the beginning
	MaxBytes int    // most bytes of content; 0: DefaultPageBytes
	Text     bool   // readable text instead of the stored lines; streamed pieces and checkpoints are left out
}

// Page is a part of a transcript: whole events only, except that one which
// alone exceeds the page is cut short with a note.
type Page struct {
	Content string
	Next    string // cursor of what follows; valid at the end too, for what will be written
	AtEnd   bool   // no complete line follows yet
}

// Tail reads one page. With Last and a page too small for all of them the
// newest events are kept.
func Tail(path string, o TailOptions) (Page, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultPageBytes
	}
	f, err := os.Open(path)
	if err != nil {
		return Page{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return Page{}, err
	}
	end, err := lineStart(f, info.Size())
	if err != nil {
		return Page{}, err
	}
	if o.Cursor == "" && o.Last > 0 {
		return newest(f, end, o)
	}
	start, err := parseCursor(f, o.Cursor, end)
	if err != nil {
		return Page{}, err
	}
	return forward(f, start, end, o)
}

// forward fills a page from start on.
func forward(f *os.File, start, end int64, o TailOptions) (Page, error) {
	lines := newLineReader(io.NewSectionReader(f, start, end-start))
	var content strings.Builder
	next := start
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !isLineError(err) {
			return Page{}, err
		}
		piece := o.show(line, err)
		if content.Len()+len(piece) > o.MaxBytes {
			if content.Len() > 0 {
				break
			}
			piece = cut(piece, o.MaxBytes)
		}
		content.WriteString(piece)
		next = start + lines.offset
	}
	return Page{Content: content.String(), Next: formatCursor(next), AtEnd: next == end}, nil
}

// newest fills a page with the last events before end.
func newest(f *os.File, end int64, o TailOptions) (Page, error) {
	var pieces []string // newest first
	size := 0
	for p, err := range backward(f, end) {
		if err != nil && !errors.Is(err, errLineTooLong) {
			return Page{}, err
		}
		piece := o.show(p.line, err)
		if piece == "" {
			continue
		}
		if size+len(piece) > o.MaxBytes {
			if size > 0 {
				break
			}
			piece = cut(piece, o.MaxBytes)
		}
		pieces = append(pieces, piece)
		size += len(piece)
		if len(pieces) == o.Last {
			break
		}
	}
	slices.Reverse(pieces)
	return Page{Content: strings.Join(pieces, ""), Next: formatCursor(end), AtEnd: true}, nil
}

// show is what a page says about a line that was read with err; empty when the
// line does not appear in this form.
func (o TailOptions) show(line []byte, err error) string {
	if err != nil {
		return fmt.Sprintf("[unreadable: %v]\n", err)
	}
	if !o.Text {
		return string(line) + "\n"
	}
	e, err := decodeLine(line)
	if err != nil {
		return fmt.Sprintf("[unreadable: %v]\n", err)
	}
	return eventText(e)
}

// cut shortens a piece that no page can hold and says by how much.
func cut(piece string, most int) string {
	const noteRoom = 48
	keep := max(0, min(most-noteRoom, len(piece)))
	for keep > 0 && !utf8.RuneStart(piece[keep]) {
		keep--
	}
	return fmt.Sprintf("%s… [%d bytes left out]\n", piece[:keep], len(piece)-keep)
}

// A cursor is the offset of a line. Callers must not rely on that.
func formatCursor(offset int64) string { return strconv.FormatInt(offset, 10) }

func parseCursor(f *os.File, cursor string, end int64) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	offset, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || offset < 0 || offset > end {
		return 0, fmt.Errorf("%w: %.40q", ErrBadCursor, cursor)
	}
	start, err := lineStart(f, offset)
	if err != nil {
		return 0, err
	}
	if start != offset {
		return 0, fmt.Errorf("%w: %.40q", ErrBadCursor, cursor)
	}
	return offset, nil
}
