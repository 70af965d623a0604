package transcript

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// WindowOptions say which events to read: those after one, or those just before one.
type WindowOptions struct {
	After  int64 // the events with a larger seq
	Before int64 // 0: after After; the last events with a smaller seq; below 0: the last of all
	// MaxBytes bounds the payloads together, of which one may be longer; 0: DefaultWindow.
	MaxBytes int
	Find     *Pattern // only events in which it is found; nil: all
	// Deltas: streamed pieces are kept of answers that are on record as a whole, too.
	Deltas bool
}

const (
	// DefaultWindow is how many bytes of payload are read when none are asked for.
	DefaultWindow = 256 << 10
	// mostScanned bounds what is read of a transcript at once, found or not.
	mostScanned = 32 << 20
)

// Window is a part of a transcript, in its order. Streamed pieces of one answer that
// follow each other are one event, or few, with the seq of the last.
type Window struct {
	Events  []thread.Event
	First   int64 // seq of the first event that was looked at; 0: none was
	Next    int64 // later events have a larger seq
	AtStart bool  // nothing is before First
	AtEnd   bool  // nothing follows yet
	Damaged int   // lines that are no events
}

// ReadWindow reads a part of a transcript, and no more of a longer one.
func ReadWindow(from records.Source, o WindowOptions) (Window, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultWindow
	}
	f, err := from.Open()
	if err != nil {
		return Window{}, err
	}
	defer func() { _ = f.Close() }()
	end, err := completeLines(f)
	if err != nil {
		return Window{}, err
	}
	w := windower{WindowOptions: o, file: f, end: end}
	if o.Before != 0 {
		return w.before()
	}
	return w.after()
}

// EventAt reads the event with a seq. Found is false when there is none.
func EventAt(from records.Source, seq int64) (e thread.Event, found bool, err error) {
	f, err := from.Open()
	if err != nil {
		return e, false, err
	}
	defer func() { _ = f.Close() }()
	end, err := completeLines(f)
	if err != nil {
		return e, false, err
	}
	w := windower{file: f, end: end}
	start, err := w.seek(seq - 1)
	if err != nil {
		return e, false, err
	}
	lines := newLineReader(io.NewSectionReader(f, start, end-start))
	for {
		e, err := lines.nextEvent()
		switch {
		case errors.Is(err, io.EOF):
			return thread.Event{}, false, nil
		case isLineError(err):
		case err != nil:
			return thread.Event{}, false, err
		case e.Seq >= seq:
			return e, e.Seq == seq, nil
		}
	}
}

// windower reads windows of an open transcript whose complete lines end at end.
type windower struct {
	WindowOptions
	file  io.ReaderAt
	end   int64
	room  int
	whole map[int]bool // turns whose answer is on record
	run   deltas       // streamed pieces that follow each other
	turns []int        // of out.Events: of what was streamed, else 0
	out   Window
}

// deltas are pieces of one answer in the order of reading, which can be backwards.
type deltas struct {
	newest thread.Event
	first  TokenDelta
	pieces []string
	length int // of the pieces
	bytes  int
	back   bool
}

// mostJoined bounds the text of one event that pieces become, in bytes.
const mostJoined = 4 << 10

// after fills a window with the events behind After.
func (w *windower) after() (Window, error) {
	start, err := w.seek(w.After)
	if err != nil {
		return Window{}, err
	}
	w.out = Window{Next: w.After, AtStart: start == 0}
	w.room, w.whole = w.MaxBytes, map[int]bool{}
	lines := newLineReader(io.NewSectionReader(w.file, start, w.end-start))
	for {
		e, err := lines.nextEvent()
		if errors.Is(err, io.EOF) {
			w.out.AtEnd = true
			break
		}
		if isLineError(err) {
			w.out.Damaged++
			continue
		}
		if err != nil {
			return Window{}, err
		}
		if e.Seq <= w.After {
			continue
		}
		if !w.fits(e) {
			break
		}
		w.seen(e)
		w.add(e)
		if lines.offset > mostScanned {
			w.out.AtEnd = start+lines.offset >= w.end
			break
		}
	}
	w.endRun()
	return w.out, nil
}

// before fills a window with the events in front of Before.
func (w *windower) before() (Window, error) {
	end := w.end
	if w.Before > 0 {
		var err error
		if end, err = w.seek(w.Before - 1); err != nil {
			return Window{}, err
		}
	}
	w.out = Window{AtEnd: end == w.end, AtStart: true}
	w.room, w.whole = w.MaxBytes, map[int]bool{}
	for at, err := range backward(w.file, end) {
		if err != nil && !errors.Is(err, errLineTooLong) {
			return Window{}, err
		}
		e, bad := decodeLine(at.line)
		if err != nil || bad != nil {
			w.out.Damaged++
			continue
		}
		if !w.fits(e) || end-at.offset > mostScanned && w.out.Next > 0 {
			w.out.AtStart = false
			break
		}
		w.seen(e)
		w.add(e)
	}
	w.endRun()
	slices.Reverse(w.out.Events)
	return w.out, nil
}

// seen notes how far a window has come.
func (w *windower) seen(e thread.Event) {
	if w.out.First == 0 || e.Seq < w.out.First {
		w.out.First = e.Seq
	}
	w.out.Next = max(w.out.Next, e.Seq)
}

// fits reports whether there is room for an event. The first has it always, and streamed
// pieces: they are left out once the answer is there.
func (w *windower) fits(e thread.Event) bool {
	if !w.Deltas && e.Type == thread.EventTokenDelta {
		return true
	}
	return w.room >= len(e.Payload) || len(w.out.Events) == 0
}

// add takes an event in.
func (w *windower) add(e thread.Event) {
	if e.Type == thread.EventTokenDelta {
		w.addDelta(e)
		return
	}
	w.endRun()
	if e.Type == thread.EventCognitionOut && !w.Deltas {
		w.dropStreamed(e)
	}
	w.keep(e, 0)
}

// keep adds an event in which the pattern is found.
func (w *windower) keep(e thread.Event, turn int) {
	if w.Find != nil {
		if _, found := w.Find.in(e.Payload); !found {
			return
		}
	}
	w.room -= len(e.Payload)
	w.out.Events, w.turns = append(w.out.Events, e), append(w.turns, turn)
}

// dropStreamed drops what was streamed of an answer that is there as a whole.
func (w *windower) dropStreamed(e thread.Event) {
	answer, err := Decode[struct {
		Turn int `json:"turn"`
	}](e)
	if err != nil || answer.Turn == 0 {
		return
	}
	w.whole[answer.Turn] = true
	var events []thread.Event
	var turns []int
	for i, turn := range w.turns {
		if turn == answer.Turn {
			w.room += len(w.out.Events[i].Payload)
			continue
		}
		events, turns = append(events, w.out.Events[i]), append(turns, turn)
	}
	w.out.Events, w.turns = events, turns
}

// addDelta lets a streamed piece become one with those before it.
func (w *windower) addDelta(e thread.Event) {
	d, err := Decode[TokenDelta](e)
	if err != nil || w.whole[d.Turn] {
		return
	}
	if !w.run.takes(d) {
		w.endRun()
		w.run = deltas{first: d, newest: e, back: w.Before != 0}
	}
	if e.Seq > w.run.newest.Seq {
		w.run.newest = e
	}
	w.run.bytes += d.Bytes
	w.run.length += len(d.Text)
	w.run.pieces = append(w.run.pieces, d.Text)
}

// takes reports whether a piece goes on with those before it. Counts of the
// provider stand in a piece of their own.
func (r *deltas) takes(d TokenDelta) bool {
	same := len(r.pieces) > 0 && r.length+len(d.Text) <= mostJoined && r.first.Turn == d.Turn && r.first.Type == d.Type && r.first.Usage == nil && d.Usage == nil
	return same && (d.Type != llm.ToolUseBlock || r.first.Text == d.Text) // which is the name of the tool
}

// endRun makes one event of the pieces.
func (w *windower) endRun() {
	r := w.run
	w.run = deltas{}
	if len(r.pieces) == 0 {
		return
	}
	d := r.first
	d.Bytes = r.bytes
	if d.Type != llm.ToolUseBlock {
		if r.back {
			slices.Reverse(r.pieces)
		}
		d.Text = strings.Join(r.pieces, "")
	}
	if payload, err := encode(d); err == nil {
		r.newest.Payload = payload
	}
	w.keep(r.newest, d.Turn)
}

// nearEnough is how close to an event a search by halves comes; the rest is read.
const nearEnough = 64 << 10

// seek returns the offset of a line such that all lines before it have a seq of at most
// after. Between it and the first larger one there is little.
func (w *windower) seek(after int64) (int64, error) {
	low, high := int64(0), w.end
	if after <= 0 {
		return 0, nil
	}
	for high-low > nearEnough {
		at, seq, err := w.lineNear(low, low+(high-low)/2, high)
		switch {
		case err != nil:
			return 0, err
		case at >= high: // one line, or lines that say nothing, fill the upper half
			high = low + (high-low)/2
		case seq > after:
			high = at
		default:
			low = at
		}
	}
	return w.firstAfter(low, after)
}

// firstAfter returns the offset of the first line behind start whose seq is larger than
// after; the end when there is none near.
func (w *windower) firstAfter(start, after int64) (int64, error) {
	lines := newLineReader(io.NewSectionReader(w.file, start, w.end-start))
	for {
		at := start + lines.offset
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return w.end, nil
		case isLineError(err):
			continue
		case err != nil:
			return 0, err
		}
		if e, err := decodeLine(line); err == nil && e.Seq > after {
			return at, nil
		}
	}
}

// lineNear returns the first line that starts in [from, high) and says its seq, and high
// when there is none. A line that starts at low is none.
func (w *windower) lineNear(low, from, high int64) (at, seq int64, err error) {
	lines := newLineReader(io.NewSectionReader(w.file, from, high-from))
	if from > low { // in the middle of a line
		if _, err := lines.next(); err != nil && !isLineError(err) {
			return high, 0, unlessEnd(err)
		}
	}
	for {
		at = from + lines.offset
		line, err := lines.next()
		if err != nil && !isLineError(err) {
			return high, 0, unlessEnd(err)
		}
		if err != nil {
			continue
		}
		if e, err := decodeLine(line); err == nil {
			return at, e.Seq, nil
		}
	}
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || isTorn(err) {
		return nil
	}
	return err
}
