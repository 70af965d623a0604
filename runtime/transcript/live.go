package transcript

import (
	"fmt"
	"io"
	"strings"

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

// add renders one more event. Payload is what it was made of, which need not be read
// again; nil where that is not what was written.
func (l *live) add(e thread.Event, payload any) {
	if l == nil || l.err != nil {
		return
	}
	if payload == nil {
		payload = frequent(e)
	}
	if text := l.text(e, payload); text != "" {
		_, l.err = io.WriteString(l.out, strings.ToValidUTF8(text, "\uFFFD"))
	}
}

// frequent reads the payload of an event of which there are many in a turn.
func frequent(e thread.Event) (payload any) {
	var err error
	switch e.Type {
	case thread.EventTokenDelta:
		payload, err = Decode[TokenDelta](e)
	case thread.EventCognitionOut:
		payload, err = Decode[CognitionOut](e)
	case thread.EventToolCallResult:
		payload, err = Decode[ToolCallResult](e)
	}
	if err != nil {
		return nil
	}
	return payload
}

func (l *live) text(e thread.Event, payload any) string {
	var text string
	switch p := payload.(type) {
	case TokenDelta:
		return l.delta(p)
	case CognitionOut:
		if l.turn > 0 {
			return l.rest(p)
		}
		text = answerText(p)
	case ToolCallResult:
		text = resultText(p)
	default:
		text = eventText(e, unsaid)
	}
	if l.turn > 0 && text != "" { // the answer was given up
		l.turn = 0
		return "\n\n" + text
	}
	return text
}

func (l *live) delta(d TokenDelta) string {
	if d.Type != llm.TextBlock || d.Text == "" {
		return ""
	}
	if l.turn == d.Turn {
		return d.Text
	}
	l.turn = d.Turn
	return fmt.Sprintf("## Turn %d\n\n%s", d.Turn, d.Text)
}

// rest is what of an answer has not been streamed: all but its text.
func (l *live) rest(p CognitionOut) string {
	l.turn = 0
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
