package transcript

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// DefaultPageBytes is the size of a page when none is asked for: with what an
// answer says beside it, a page stays within what every client shows.
const DefaultPageBytes = 10_000

// ErrBadCursor is wrapped when a cursor did not come from a page of the same
// transcript.
var ErrBadCursor = errors.New("not a cursor of this transcript")

// TailOptions say which part of a transcript to read.
type TailOptions struct {
	Cursor   string // where the page before ended; empty: the beginning
	Last     int    // without a cursor: only the newest so many events; 0: from the beginning
	MaxBytes int    // most bytes of content, as they stand in JSON; 0: DefaultPageBytes
	Text     bool   // readable text instead of the stored lines; streamed pieces and checkpoints are left out
}

// Page is a part of a transcript. Pages hold whole events; one that alone exceeds
// a page is spread over several, so that all pages together are the whole text.
type Page struct {
	Content string
	Next    string // cursor of what follows; valid at the end too, for what will be written
	AtEnd   bool   // no complete line follows yet
	Earlier string // with Last: cursor of the first of those events, where not all of them had room
}

// Tail reads one page. With Last and a page too small for all of them the
// newest events are kept, and Earlier is where to read the others.
func Tail(from records.Source, o TailOptions) (Page, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultPageBytes
	}
	f, err := from.Open()
	if err != nil {
		return Page{}, err
	}
	defer func() { _ = f.Close() }()
	end, err := completeLines(f)
	if err != nil {
		return Page{}, err
	}
	p := pager{TailOptions: o, file: f, end: end}
	if o.Cursor == "" && o.Last > 0 {
		return p.newest()
	}
	start, err := p.parseCursor()
	if err != nil {
		return Page{}, err
	}
	return p.forward(start)
}

// pager reads pages of an open transcript whose complete lines end at end.
type pager struct {
	TailOptions
	file io.ReaderAt
	end  int64
}

// place is where a page begins or ends: at a line, and behind so many bytes of
// what a page shows of it.
type place struct {
	line   int64
	within int
}

// forward fills a page from start on.
func (p pager) forward(start place) (Page, error) {
	lines := newLineReader(io.NewSectionReader(p.file, start.line, p.end-start.line))
	var content strings.Builder
	room, next := p.MaxBytes, start
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !isLineError(err) {
			return Page{}, err
		}
		piece := p.show(line, err, next.line)
		if next.within > len(piece) {
			return Page{}, p.badCursor()
		}
		piece = piece[next.within:]
		part := piece[:tool.FitsJSON(piece, room)]
		if len(part) < len(piece) {
			if content.Len() == 0 {
				part = p.atLeastOne(piece, part)
				content.WriteString(part)
				next.within += len(part)
			}
			break
		}
		content.WriteString(piece)
		room -= tool.SizeInJSON(piece)
		next = place{line: start.line + lines.offset}
	}
	return Page{Content: content.String(), Next: p.formatCursor(next), AtEnd: next == place{line: p.end}}, nil
}

// atLeastOne is part, or the first character of piece: a page that gets nowhere
// would be read for ever.
func (p pager) atLeastOne(piece, part string) string {
	if part != "" {
		return part
	}
	for at := range piece {
		if at > 0 {
			return piece[:at]
		}
	}
	return piece
}

// newest fills a page with the last events before end. A newest event that no
// page can hold is read on like any other page.
func (p pager) newest() (Page, error) {
	var pieces []string // newest first
	page := Page{Next: p.formatCursor(place{line: p.end}), AtEnd: true}
	room, full, seen := p.MaxBytes, false, 0
	for at, err := range backward(p.file, p.end) {
		if err != nil && !errors.Is(err, errLineTooLong) {
			return Page{}, err
		}
		piece := p.show(at.line, err, at.offset)
		if piece == "" {
			continue
		}
		seen++
		size := tool.SizeInJSON(piece)
		switch {
		case full:
			page.Earlier = p.formatCursor(place{line: at.offset})
		case size <= room:
			pieces, room = append(pieces, piece), room-size
		case len(pieces) == 0:
			var err error
			if page, err = p.forward(place{line: at.offset}); err != nil {
				return Page{}, err
			}
			pieces, full = []string{page.Content}, true
		default:
			page.Earlier, full = p.formatCursor(place{line: at.offset}), true
		}
		if seen == p.Last {
			break
		}
	}
	slices.Reverse(pieces)
	page.Content = strings.Join(pieces, "")
	return page, nil
}

// show is what a page says about the line at an offset that was read with err;
// empty when the line does not appear in this form.
func (p pager) show(line []byte, err error, at int64) string {
	if err != nil {
		return fmt.Sprintf("[unreadable: %v]\n", err)
	}
	if !p.Text {
		return string(line) + "\n"
	}
	e, err := decodeLine(line)
	if err != nil {
		return fmt.Sprintf("[unreadable: %v]\n", err)
	}
	return eventText(e, func() string { return p.saidBefore(at) })
}

// saidBefore is the newest answer of the model before an offset, if it stands
// near.
func (p pager) saidBefore(at int64) string {
	seen := 0
	for before, err := range backward(p.file, at) {
		if seen++; seen > lastLines || err != nil && !errors.Is(err, errLineTooLong) {
			break
		}
		if e, err := decodeLine(before.line); err == nil && e.Type == thread.EventCognitionOut {
			return saidIn(e)
		}
	}
	return ""
}

// A cursor is the offset of a line and, where a page ended within what it shows
// of one, the form of the page and the bytes it showed: 1200, or 1200.text.500.
// Callers must not rely on that.
func (p pager) formatCursor(at place) string {
	cursor := strconv.FormatInt(at.line, 10)
	if at.within > 0 {
		cursor += "." + p.form() + "." + strconv.Itoa(at.within)
	}
	return cursor
}

func (p pager) form() string {
	if p.Text {
		return "text"
	}
	return "jsonl"
}

func (p pager) badCursor() error { return fmt.Errorf("%w: %.40q", ErrBadCursor, p.Cursor) }

func (p pager) parseCursor() (at place, err error) {
	if p.Cursor == "" {
		return place{}, nil
	}
	line, rest, inside := strings.Cut(p.Cursor, ".")
	if at.line, err = strconv.ParseInt(line, 10, 64); err != nil || at.line < 0 || at.line > p.end {
		return place{}, p.badCursor()
	}
	if inside {
		form, within, _ := strings.Cut(rest, ".")
		if form != p.form() {
			return place{}, fmt.Errorf("%w in this format, but in %s", p.badCursor(), form)
		}
		if at.within, err = strconv.Atoi(within); err != nil || at.within < 1 || at.line == p.end {
			return place{}, p.badCursor()
		}
	}
	start, err := lineStart(p.file, at.line)
	if err != nil {
		return place{}, err
	}
	if start != at.line {
		return place{}, p.badCursor()
	}
	return at, nil
}
