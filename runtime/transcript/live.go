package transcript

import (
	"fmt"
	"io"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// live renders a transcript while it is written, event by event, so that no turn costs
// more than the one before. The streamed part of an answer stands there at once, and
// the events behind it add the rest.
type live struct {
	out  io.Writer
	err  error // of the first failed write, after which nothing is written
	turn int   // whose text is being streamed; 0: none is
}

// Follow renders what is in the transcript so far to out, and from then on every line
// that is written, at once. A failure to write there does no harm to the transcript and
// ends the rendering. It must be called before the first Delta.
func (w *Writer) Follow(out io.Writer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := render(eventsOf(w.f), out); err != nil {
		return err
	}
	if w.offset == 0 {
		if _, err := fmt.Fprintf(out, "# %s\n\n", w.id); err != nil {
			return err
		}
	}
	w.live = &live{out: out}
	return nil
}

// Unfollow ends what Follow has begun, and returns the failure that has ended it
// before.
func (w *Writer) Unfollow() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live == nil {
		return nil
	}
	err := w.live.err
	w.live = nil
	return err
}

// shown reports whether a payload may have something for a rendering: a streamed piece
// that is no text has not, and there are many.
func shown(payload any) bool {
	d, streamed := payload.(TokenDelta)
	return !streamed || d.Type == llm.TextBlock
}

// add renders one more event.
func (l *live) add(e thread.Event) {
	if l == nil || l.err != nil {
		return
	}
	if text := l.text(e); text != "" {
		_, l.err = io.WriteString(l.out, text)
	}
}

func (l *live) text(e thread.Event) string {
	switch e.Type {
	case thread.EventTokenDelta:
		return l.delta(e)
	case thread.EventCognitionOut:
		if l.turn > 0 {
			return l.rest(e)
		}
	}
	text := eventText(e, unsaid)
	if l.turn > 0 && text != "" { // the answer was given up
		l.turn = 0
		return "\n\n" + text
	}
	return text
}

func (l *live) delta(e thread.Event) string {
	d, err := Decode[TokenDelta](e)
	if err != nil || d.Type != llm.TextBlock || d.Text == "" {
		return ""
	}
	if l.turn == d.Turn {
		return d.Text
	}
	l.turn = d.Turn
	return fmt.Sprintf("## Turn %d\n\n%s", d.Turn, d.Text)
}

// rest is what of an answer has not been streamed: all but its text.
func (l *live) rest(e thread.Event) string {
	l.turn = 0
	p, err := Decode[CognitionOut](e)
	if err != nil {
		return "\n\n" + eventText(e, unsaid)
	}
	var others Blocks
	for _, b := range p.Blocks {
		if b.Type != llm.TextBlock {
			others = append(others, b)
		}
	}
	return "\n\n" + blocksText(others)
}

// unsaid is for the end of a thread, which a rendering made anew has with the answer
// before it in mind.
func unsaid() string { return "" }
