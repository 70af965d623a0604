package termsvg

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cell is what a terminal shows in one column.
type cell struct {
	r     rune
	style style
}

// style is how a cell looks. Colour 0 is that of the terminal, others are SGR's 30 to 37
// and 90 to 97.
type style struct {
	color     int
	bold, dim bool
	italic    bool
}

// screen is a terminal's: rows of cells, a cursor, and what of a sequence has come in.
type screen struct {
	columns, rows int
	lines         [][]cell
	row, column   int
	style         style
	dirty         map[int]bool // rows
	pending       []byte       // of a sequence or rune that is not whole
}

// maxSequence is how many bytes of an escape sequence are waited for. One that is longer is
// left out, and what is written next is text again.
const maxSequence = 4096

// write shows bytes. It keeps what is not whole yet for the next.
func (s *screen) write(p []byte) {
	p = append(s.pending, p...)
	s.pending = nil
	for len(p) > 0 {
		n, whole := s.next(p)
		if !whole && len(p) < maxSequence {
			s.pending = append([]byte(nil), p...)
			return
		}
		p = p[n:]
	}
}

// next shows what stands first, and says how many bytes it was.
func (s *screen) next(p []byte) (n int, whole bool) {
	switch c := p[0]; {
	case c == 0x1b:
		return s.escape(p)
	case c == '\n':
		s.row, s.column = s.row+1, 0
		s.scroll()
	case c == '\r':
		s.column = 0
	case c == '\t':
		s.column = min(s.column/8*8+8, s.columns-1)
	case c < 0x20 || c == 0x7f:
	default:
		if !utf8.FullRune(p) {
			return 1, false
		}
		r, size := utf8.DecodeRune(p)
		s.put(r)
		return size, true
	}
	return 1, true
}

// put shows a rune at the cursor. One that has no look of its own, or that would change
// the order of others, is shown as what it is not: a box.
func (s *screen) put(r rune) {
	if !unicode.IsPrint(r) {
		r = utf8.RuneError
	}
	if s.column >= s.columns {
		s.row, s.column = s.row+1, 0
		s.scroll()
	}
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	line := s.lines[s.row]
	for len(line) <= s.column {
		line = append(line, cell{r: ' '})
	}
	line[s.column] = cell{r, s.style}
	s.lines[s.row] = line
	s.dirty[s.row] = true
	s.column++
}

// scroll moves everything up when the cursor has left the screen.
func (s *screen) scroll() {
	for s.row >= s.rows {
		s.lines = append(s.lines[min(1, len(s.lines)):], nil)
		for i := range s.lines {
			s.dirty[i] = true
		}
		s.row--
	}
}

// escape obeys a sequence, or leaves it out.
func (s *screen) escape(p []byte) (n int, whole bool) {
	if len(p) < 2 {
		return 1, false
	}
	switch p[1] {
	case '[':
		for i := 2; i < len(p); i++ {
			if p[i] >= 0x40 && p[i] <= 0x7e {
				s.control(p[i], string(p[2:i]))
				return i + 1, true
			}
			if p[i] < 0x20 || p[i] > 0x7e {
				return i, true // the byte there is no part of it
			}
		}
		return len(p), false
	case ']', 'P', 'X', '^', '_': // a text for the terminal, up to its end or the line's
		for i := 2; i < len(p); i++ {
			switch {
			case p[i] == 0x07:
				return i + 1, true
			case p[i] == 0x1b && i+1 < len(p) && p[i+1] == '\\':
				return i + 2, true
			case p[i] == '\n':
				return i, true
			}
		}
		return len(p), false
	default:
		return 2, true
	}
}

// control obeys a control sequence that this module's programs write.
func (s *screen) control(final byte, params string) {
	number := func(otherwise int) int {
		n, err := strconv.Atoi(params)
		if err != nil || n < 0 {
			return otherwise
		}
		return n
	}
	switch final {
	case 'A':
		s.row = max(0, s.row-max(1, number(1)))
	case 'K':
		s.erase(number(0))
	case 'm':
		s.render(params)
	}
}

// erase empties a part of the line: from the cursor (0), up to it (1), or all (2).
func (s *screen) erase(part int) {
	if s.row >= len(s.lines) {
		return
	}
	line := s.lines[s.row]
	for i := range line {
		if part == 2 || part == 0 && i >= s.column || part == 1 && i <= s.column {
			line[i] = cell{r: ' '}
		}
	}
	s.dirty[s.row] = true
}

// render changes how what follows looks.
func (s *screen) render(params string) {
	for word := range strings.SplitSeq(params, ";") {
		n, err := strconv.Atoi(word)
		switch {
		case word == "" || err == nil && n == 0:
			s.style = style{}
		case err != nil:
			return
		case n == 38 || n == 48:
			return // colours by number: the numbers that follow belong to them
		case n == 1:
			s.style.bold = true
		case n == 2:
			s.style.dim = true
		case n == 3:
			s.style.italic = true
		case n == 22:
			s.style.bold, s.style.dim = false, false
		case n == 23:
			s.style.italic = false
		case n == 39:
			s.style.color = 0
		case n >= 30 && n <= 37 || n >= 90 && n <= 97:
			s.style.color = n
		}
	}
}
