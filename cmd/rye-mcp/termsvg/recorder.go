package termsvg

import (
	"slices"
	"time"
)

// Bounds of a recording; the rest is left out.
const (
	maxLooks = 2000            // of all rows
	maxIdle  = time.Second     // longer pauses are shown as one of so long
	holdEnd  = 5 * time.Second // how long the last picture stands before it begins again
)

// Options are those of a recording.
type Options struct {
	Title         string // told to those who cannot see it, and shown above
	Columns, Rows int    // of the terminal; a longer line goes on in the next one
	Now           func() time.Time
}

// Recorder is a terminal that remembers how each of its rows has looked and when. It is
// for one goroutine.
type Recorder struct {
	opts   Options
	screen screen
	last   time.Time     // of the last write
	at     time.Duration // of it in the recording
	rows   [][]look
	looks  int
}

// look is how a row looks from a time on.
type look struct {
	at    time.Duration
	cells []cell
}

// New returns an empty terminal.
func New(opts Options) *Recorder {
	return &Recorder{
		opts:   opts,
		screen: screen{columns: opts.Columns, rows: opts.Rows, dirty: map[int]bool{}},
		last:   opts.Now(),
	}
}

// Write shows bytes. It never fails.
func (r *Recorder) Write(p []byte) (int, error) {
	now := r.opts.Now()
	r.at += max(0, min(now.Sub(r.last), maxIdle))
	r.last = now
	r.screen.write(p)
	for row := range r.screen.dirty {
		if row < len(r.screen.lines) {
			r.keep(row, r.screen.lines[row])
		}
	}
	clear(r.screen.dirty)
	return len(p), nil
}

// keep remembers how a row looks now, when that is new.
func (r *Recorder) keep(row int, cells []cell) {
	for len(r.rows) <= row {
		r.rows = append(r.rows, nil)
	}
	history := r.rows[row]
	if r.looks >= maxLooks || len(history) > 0 && slices.Equal(history[len(history)-1].cells, cells) {
		return
	}
	r.rows[row] = append(history, look{r.at, slices.Clone(cells)})
	r.looks++
}
